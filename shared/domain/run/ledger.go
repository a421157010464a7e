package run

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/usage"
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
	// Scopes are the accounts: of the tenant, of a project, of a session, and of a key for its budget
	// and its rate. They never change during the life of a run.
	Scopes []string      `json:"scopes"`
	Held   budget.Amount `json:"held,omitzero"`
	// Known is the usage of the current attempt that is known but not charged yet.
	Known budget.Amount `json:"known,omitzero"`
	// Used is the sum of the usage of the attempts that have ended.
	Used budget.Amount `json:"used,omitzero"`
	// KnownTokens and UsedTokens count the tokens of Known and Used, for the usage of the tenant.
	KnownTokens usage.Tokens `json:"knownTokens,omitzero"`
	UsedTokens  usage.Tokens `json:"usedTokens,omitzero"`
	// Key is the name of the client's token; empty for a client without one.
	Key string `json:"key,omitempty"`
	// Prices are those at the admission.
	usage.Prices
	// Defaults are the limits, at the admission, of accounts without their own; nil means
	// budget.Standard.
	Defaults *budget.Defaults `json:"defaults,omitempty"`
}

// MostScopes is the maximum number of accounts of a run.
const MostScopes = 6

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
		CostNano: r.Cost(usage.Tokens{Input: int64(prompt), Output: int64(generated)}),
	}
}

// Use returns the usage of a generation: generated tokens, decode time and cost. Tokens of the
// prompt count only if they have a price. Without an answer only the time counts.
func (r Reservation) Use(g Generation) budget.Amount {
	used := budget.Amount{TimeMS: g.DecodeMS}
	if g.TokensOut == 0 && g.Finish == "" {
		return used
	}
	used.Turns, used.Tokens, used.CostNano = 1, int64(g.TokensOut), r.Cost(tokensOf(g))
	if r.InputPrice > 0 {
		used.Tokens += int64(g.TokensIn)
	}
	return used
}

// tokensOf returns the tokens of a generation. Without an answer they are not counted.
func tokensOf(g Generation) usage.Tokens {
	if g.TokensOut == 0 && g.Finish == "" {
		return usage.Tokens{}
	}
	return usage.Of(g.TokensIn, g.CachedTokens, g.TokensOut)
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

// generated does the same as Noted for a generation, and also counts its tokens.
func (r *Reservation) generated(g Generation) *Reservation {
	if r == nil || r.Held.Zero() {
		return r
	}
	noted := r.Noted(r.Use(g))
	noted.KnownTokens = tokensOf(g)
	return noted
}

// Reserves reports whether the run holds a part of its budgets.
func (r Run) Reserves() bool { return r.Reservation != nil && !r.Reservation.Held.Zero() }

// charged returns the reservation after an attempt. It charges at most what is held, except for
// the time, which is charged as measured. The rest remains held.
func (r Reservation) charged() *Reservation {
	used := r.Known.Within(r.Held)
	r.Held, r.Known, r.Used = r.Held.Minus(used).Positive(), budget.Amount{}, r.Used.Plus(used)
	r.KnownTokens, r.UsedTokens = usage.Tokens{}, r.UsedTokens.Plus(r.KnownTokens)
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

// ledgerChange returns the change of a run's accounts, with what it charges for the usage of the
// tenant; nil if neither changes.
func ledgerChange(before *Reservation, after Run, now time.Time) *budget.Change {
	if before == after.Reservation {
		return nil
	}
	var was, is Reservation
	if before != nil {
		was = *before
	}
	if after.Reservation != nil {
		is = *after.Reservation
	}
	change := budget.Between(is.Scopes, was.Held, was.Used, is.Held, is.Used, now, budget.OrStandard(is.Defaults))
	charge := chargeOf(was, is, after, now)
	if charge == nil {
		return change
	}
	if change == nil {
		change = &budget.Change{Scopes: is.Scopes, At: now, Defaults: budget.OrStandard(is.Defaults)}
	}
	change.Charge = charge
	return change
}

// chargeOf returns what is charged between two reservations of an inference task; nil if nothing
// is.
func chargeOf(was, is Reservation, of Run, now time.Time) *usage.Charge {
	used := is.Used.Minus(was.Used)
	sum := usage.Sum{Tasks: used.Turns, Tokens: is.UsedTokens.Minus(was.UsedTokens), TimeMS: used.TimeMS, CostNano: used.CostNano}
	work := of.Work.Inference
	if work == nil || sum.Zero() {
		return nil
	}
	return &usage.Charge{Model: work.ServedModel(), Key: cmp.Or(is.Key, of.CreatedBy.Subject), Session: work.SessionID, Sum: sum, At: now}
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
