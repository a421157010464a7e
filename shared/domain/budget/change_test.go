package budget_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
)

var (
	turn    = budget.Amount{Turns: 1}
	session = budget.SessionScope("s")
)

func TestClosedSessionTakesNoTask(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		account budget.Account
		want    budget.Part
	}{
		"open":                     {budget.Account{}, ""},
		"without an expiry":        {budget.Account{Closed: true}, budget.Closed},
		"before its expiry":        {budget.Account{Closed: true, ExpiresAt: at.Add(time.Minute)}, budget.Closed},
		"after its expiry":         {budget.Account{Closed: true, ExpiresAt: at.Add(-time.Minute)}, budget.Closed},
		"open, after its expiry":   {budget.Account{ExpiresAt: at.Add(-time.Minute)}, budget.Expired},
		"open, before its expiry":  {budget.Account{ExpiresAt: at.Add(time.Minute)}, ""},
		"open, at its expiry":      {budget.Account{ExpiresAt: at}, budget.Expired},
		"without an expiry, spent": {budget.Account{Closed: true, Spent: turn, Limit: budget.Limit{Turns: new(int64(1))}}, budget.Closed},
	} {
		a := row.account
		a.Scope = session
		if open := row.want == ""; a.Open(at) != open {
			t.Errorf("%s: got an open session %v, want %v", name, a.Open(at), open)
		}
		after, short := (budget.Move{Scope: session, Hold: turn, At: at, TTL: time.Hour}).Apply(a)
		if row.want == "" {
			if short != nil || after.Held != turn {
				t.Errorf("%s: got %+v, %v, want the task admitted", name, after, short)
			}
			continue
		}
		if short == nil || short.Part != row.want || !short.SessionClosed() || after != a {
			t.Errorf("%s: got %+v, %v for a task, want no change and a shortage of %s", name, after, short, row.want)
		}
		if _, short := (budget.Move{Scope: session, Release: turn, Spend: turn, At: at}).Apply(a); short != nil {
			t.Errorf("%s: got %v for a settlement, want it accepted", name, short)
		}
	}
}

// TestExpiryOnlyMovesForward applies moves to a session that expires in ten minutes.
func TestExpiryOnlyMovesForward(t *testing.T) {
	t.Parallel()
	expires := at.Add(10 * time.Minute)
	hold, settlement := budget.Move{Hold: turn}, budget.Move{Release: turn, Spend: turn}
	both := budget.Move{Hold: turn, Release: turn, Spend: turn}
	for name, row := range map[string]struct {
		move  budget.Move
		after time.Duration
		ttl   time.Duration
		want  time.Time
	}{
		"task":                                     {hold, time.Minute, 10 * time.Minute, at.Add(11 * time.Minute)},
		"task that was decided before":             {hold, -time.Minute, 10 * time.Minute, expires},
		"task after the life became shorter":       {hold, time.Minute, time.Minute, expires},
		"task after the life became unlimited":     {hold, time.Minute, 0, expires},
		"settlement":                               {settlement, time.Minute, 10 * time.Minute, expires},
		"settlement that was decided before":       {settlement, -time.Minute, 10 * time.Minute, expires},
		"settlement after the life became shorter": {settlement, time.Minute, time.Minute, expires},
		"settlement without a life":                {settlement, time.Minute, 0, expires},
		"next attempt":                             {both, time.Minute, 10 * time.Minute, at.Add(11 * time.Minute)},
	} {
		m := row.move
		m.Scope, m.At, m.TTL = session, at.Add(row.after), row.ttl
		got, short := m.Apply(budget.Account{Scope: session, ExpiresAt: expires, Held: turn})
		if short != nil || !got.ExpiresAt.Equal(row.want) {
			t.Errorf("%s: got expiry %v, %v, want %v", name, got.ExpiresAt, short, row.want)
		}
	}
}

// TestMergedMovesHaveTheLaterTime merges moves of one session in both orders. The later task
// must decide the expiry.
func TestMergedMovesHaveTheLaterTime(t *testing.T) {
	t.Parallel()
	early := budget.Move{Tenant: "acme", Scope: session, Hold: turn, At: at, TTL: time.Hour}
	late := budget.Move{Tenant: "acme", Scope: session, Hold: turn, Release: budget.Amount{Tokens: 2}, Spend: budget.Amount{Tokens: 1}, At: at.Add(time.Minute), TTL: time.Hour}
	other := budget.Move{Tenant: "acme", Scope: budget.ScopeTenant, Hold: turn, At: at.Add(time.Hour)}
	for _, moves := range [][]budget.Move{{early, late, other}, {other, late, early}} {
		got := budget.Merge(moves)
		if len(got) != 2 || got[0].Scope != session || !got[0].At.Equal(late.At) || !got[1].At.Equal(other.At) {
			t.Fatalf("got %+v, want one move of the session at %v", got, late.At)
		}
		if m := got[0]; m.Hold != turn.Plus(turn) || m.Release.Tokens != 2 || m.Spend.Tokens != 1 || m.TTL != time.Hour {
			t.Errorf("got %+v, want the sums of both", m)
		}
		if a, short := got[0].Apply(got[0].New()); short != nil || !a.ExpiresAt.Equal(late.At.Add(time.Hour)) {
			t.Errorf("got %+v, %v, want an expiry an hour after the later task", a, short)
		}
	}
}
