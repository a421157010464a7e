package run

import (
	"errors"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/budget"
)

// Reservation is what an attempt may use of the budgets of a run, and what its attempts
// have used. The creation of the run holds for the first attempt. A fact that knows what an
// attempt has used until now says so with Noted.
//
// The attempt is charged with that in the decision that ends it, whatever the fact: the one
// in which the run leaves Terminating, or ends. One whose stream has ended is the last one, and
// is charged with that: the slot may be free later. What the attempt has left then is held for
// the next one in the same commit, so that no other run takes it, or released without a next
// one. An attempt that is lost is charged with what is known to be generated: what its engine
// has generated beyond that was lost with it, and is not charged.
//
// The commit of a decision changes the accounts by the difference of the reservations before
// and after it; see Decision.Ledger. So an account holds and has spent the sums over its
// runs.
type Reservation struct {
	// Scopes are the accounts: of the tenant, of a project and of a session. They do not
	// change while the run lives.
	Scopes []string      `json:"scopes"`
	Held   budget.Amount `json:"held,omitzero"`
	// Known is what the attempt is known to have used. It is not charged yet.
	Known budget.Amount `json:"known,omitzero"`
	// Used is the sum of the attempts that have ended.
	Used budget.Amount `json:"used,omitzero"`
	// InputPrice and OutputPrice are the prices of a token at the admission, in nano-dollars.
	InputPrice  int64 `json:"inputPrice,omitempty"`
	OutputPrice int64 `json:"outputPrice,omitempty"`
	// Defaults are the limits of accounts without their own at the admission; nil is
	// budget.Standard.
	Defaults *budget.Defaults `json:"defaults,omitempty"`
}

// MostScopes is the largest number of accounts of a run.
const MostScopes = 3

// errScopes: a decision changed the accounts of a run. What it holds would never be
// released.
var errScopes = errors.New("the run has other accounts than before, or too many")

// Renewed returns the reservation with an amount that the attempt may use.
func (r Reservation) Renewed(held budget.Amount) *Reservation {
	r.Held = held
	return &r
}

// Most returns what a task may use at most: one turn, its prompt and the tokens that it may
// generate, and the time until its deadline.
func (r Reservation) Most(prompt, generated int, within time.Duration) budget.Amount {
	return budget.Amount{
		Turns: 1, Tokens: int64(prompt) + int64(generated), TimeMS: within.Milliseconds(),
		CostNano: int64(prompt)*r.InputPrice + int64(generated)*r.OutputPrice,
	}
}

// Use returns what a generation has used: the tokens that were generated, the time of that
// and the cost. The tokens of the prompt count only if they have a price. Without an answer
// neither they nor the turn count.
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

// Noted returns the reservation of an attempt that is known to have used an amount until
// now. A reservation that has ended is returned as it is.
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

// charged returns the reservation after an attempt. It is charged at most what it held, but
// for its time, which is charged as measured. What is left remains held.
func (r Reservation) charged() *Reservation {
	used := r.Known.Within(r.Held)
	r.Held, r.Known, r.Used = r.Held.Minus(used).Positive(), budget.Amount{}, r.Used.Plus(used)
	return &r
}

// Settled returns the reservation after the last attempt, which holds nothing.
func (r *Reservation) Settled() *Reservation {
	if r == nil || r.Held.Zero() {
		return r
	}
	return r.charged().Renewed(budget.Amount{})
}

// settle ends the reservation of an attempt that is over.
func (d *draft) settle(before State) {
	if !d.Reserves() {
		return
	}
	switch {
	case d.State.Terminal(), d.answered:
		d.Reservation, d.changed = d.Reservation.Settled(), true
	case before == Terminating && d.State != Terminating && !d.Reservation.Known.Zero():
		d.Reservation, d.changed = d.Reservation.charged(), true
	}
}

// ledgerChange returns what a commit does to the accounts of a run, nil for nothing.
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
