package run

import (
	"errors"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
)

// Reservation is the part of the budgets that an attempt may use, and the sum of what earlier
// attempts have used. The creation of the run reserves for the first attempt. A fact that knows
// the usage of an attempt so far records it with Noted.
//
// The decision that ends an attempt charges the noted usage: the one in which the run leaves
// Terminating, or ends. An attempt whose stream has ended is the last one, and is charged at
// once, even if its slot is released later. The same commit holds the rest for the next
// attempt, so that no other run takes it. It releases the rest if no attempt follows. A lost
// attempt is charged with its known usage only.
//
// The commit of a decision changes the accounts by the difference of the reservations before
// and after it; see Decision.Ledger. So the held and spent amounts of an account are the sums
// over its runs.
type Reservation struct {
	// Scopes are the accounts: of the tenant, of a project and of a session. They never change
	// during the life of a run.
	Scopes []string      `json:"scopes"`
	Held   budget.Amount `json:"held,omitzero"`
	// Known is the usage of the current attempt that is known but not charged yet.
	Known budget.Amount `json:"known,omitzero"`
	// Used is the sum of the usage of the attempts that have ended.
	Used budget.Amount `json:"used,omitzero"`
	// InputPrice and OutputPrice are the prices of a token at the admission, in nano-dollars.
	InputPrice  int64 `json:"inputPrice,omitempty"`
	OutputPrice int64 `json:"outputPrice,omitempty"`
	// Defaults are the limits, at the admission, of accounts without their own; nil means
	// budget.Standard.
	Defaults *budget.Defaults `json:"defaults,omitempty"`
}

// MostScopes is the maximum number of accounts of a run.
const MostScopes = 3

// errScopes means that a decision changed the accounts of a run. The reserved amounts would never
// be released.
var errScopes = errors.New("the run has other accounts than before, or too many")

// Renewed returns the reservation with the amount that the attempt may use.
func (r Reservation) Renewed(held budget.Amount) *Reservation {
	r.Held = held
	return &r
}

// Most returns the largest amount that a task can use: one turn, the tokens of its prompt and of
// its answer, their cost, and the time until its deadline.
func (r Reservation) Most(prompt, generated int, within time.Duration) budget.Amount {
	return budget.Amount{
		Turns: 1, Tokens: int64(prompt) + int64(generated), TimeMS: within.Milliseconds(),
		CostNano: int64(prompt)*r.InputPrice + int64(generated)*r.OutputPrice,
	}
}

// Use returns the usage of a generation: generated tokens, decode time and cost. Tokens of the
// prompt count only if they have a price. Without an answer only the time counts.
func (r Reservation) Use(g Generation) budget.Amount {
	used := budget.Amount{TimeMS: g.DecodeMS}
	if g.TokensOut == 0 && g.Finish == "" {
		return used
	}
	used.Turns, used.Tokens, used.CostNano = 1, int64(g.TokensOut), int64(g.TokensIn)*r.InputPrice+int64(g.TokensOut)*r.OutputPrice
	if r.InputPrice > 0 {
		used.Tokens += int64(g.TokensIn)
	}
	return used
}

// Noted returns the reservation with the usage of the current attempt that is known so far. It
// returns a reservation that holds nothing unchanged.
func (r *Reservation) Noted(known budget.Amount) *Reservation {
	if r == nil || r.Held.Zero() {
		return r
	}
	noted := *r
	noted.Known = known
	return &noted
}

// Reserves reports whether the run holds a part of its budgets.
func (r Run) Reserves() bool { return r.Reservation != nil && !r.Reservation.Held.Zero() }

// charged returns the reservation after an attempt. It charges at most what is held, except for
// the time, which is charged as measured. The rest remains held.
func (r Reservation) charged() *Reservation {
	used := r.Known.Within(r.Held)
	r.Held, r.Known, r.Used = r.Held.Minus(used).Positive(), budget.Amount{}, r.Used.Plus(used)
	return &r
}

// Settled returns the reservation after the last attempt: charged, and holding nothing.
func (r *Reservation) Settled() *Reservation {
	if r == nil || r.Held.Zero() {
		return r
	}
	return r.charged().Renewed(budget.Amount{})
}

// settleReservation charges the reservation for an attempt that has ended.
func (d *draft) settleReservation(before State) {
	if !d.Reserves() {
		return
	}
	switch {
	case d.State.Terminal(), d.usageFinal:
		d.Reservation, d.changed = d.Reservation.Settled(), true
	case before == Terminating && d.State != Terminating && !d.Reservation.Known.Zero():
		d.Reservation, d.changed = d.Reservation.charged(), true
	}
}

// ledgerChange returns the change of a run's accounts; nil if they do not change.
func ledgerChange(before, after *Reservation, now time.Time) *budget.Change {
	if before == after {
		return nil
	}
	var was, is Reservation
	if before != nil {
		was = *before
	}
	if after != nil {
		is = *after
	}
	return budget.Between(is.Scopes, was.Held, was.Used, is.Held, is.Used, now, budget.OrStandard(is.Defaults))
}

// checkScopes returns errScopes if the decision changes the accounts of a run.
func checkScopes(before, after *Reservation) error {
	if before == after {
		return nil
	}
	if after == nil || before != nil && !slices.Equal(before.Scopes, after.Scopes) || len(after.Scopes) > MostScopes {
		return errScopes
	}
	return nil
}
