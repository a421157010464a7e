package dynamo_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// inSession returns the write that creates a run which holds a turn of session s.
func (i *interleaved) inSession(id string) port.Write {
	r := export(id)
	r.Reservation = (run.Reservation{Scopes: []string{budget.SessionScope("s")}}).Renewed(budget.Amount{Turns: 1})
	return port.WriteOf(run.New(r, i.clock.Now()))
}

// TestExpiryMovesForwardOnly extends or closes a session between the read of the session and
// the commit of a task.
func TestExpiryMovesForwardOnly(t *testing.T) {
	t.Parallel()
	i := interleave(t)
	_, err := i.Create(t.Context(), i.inSession("a"), nil)
	i.ok(err)
	i.clock.Advance(time.Minute)
	early := i.inSession("early")
	i.clock.Advance(time.Minute)
	late := i.inSession("late")
	i.before = func() {
		_, err := i.Create(t.Context(), late, nil)
		i.ok(err)
	}
	_, err = i.Create(t.Context(), early, nil)
	i.ok(err)
	account, err := i.Account(t.Context(), "default", budget.SessionScope("s"))
	if err != nil || account.Held.Turns != 3 || !account.ExpiresAt.Equal(late.Ledger.At.Add(budget.SessionTTL)) {
		t.Errorf("got %+v, %v; want three turns and the expiry of the later task", account, err)
	}
	next := i.inSession("next")
	i.before = func() {
		i.ok(i.CloseAccount(t.Context(), "default", budget.SessionScope("s"), i.clock.Now()))
	}
	_, err = i.Create(t.Context(), next, nil)
	if short, ok := errors.AsType[*port.NoBudget](err); !ok || short.Part != budget.Closed {
		t.Errorf("got %v, want the session closed", err)
	}
}
