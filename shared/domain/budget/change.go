package budget

import (
	"cmp"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/usage"
)

// Defaults are the limits of accounts without limits of their own, and the life of a session.
type Defaults struct {
	Tenant  Limit `json:"tenant,omitzero"`
	Project Limit `json:"project,omitzero"`
	Session Limit `json:"session,omitzero"`
	// Key and Rate are those of the key of a task, for its budget and its requests of a minute.
	Key  Limit `json:"key,omitzero"`
	Rate Limit `json:"rate,omitzero"`
	// Offer is that of the offer of a pool of another tenant.
	Offer Limit `json:"offer,omitzero"`
	// SessionTTL is the time from the last admitted task of a session to its expiry. Each task
	// extends the session. 0 means that sessions do not expire.
	SessionTTL time.Duration `json:"sessionTtl,omitempty"`
}

// The default limit of a session.
const (
	SessionTurns = 8
	SessionTTL   = 600 * time.Second
)

// Standard returns the defaults of a deployment without settings: sessions of eight turns
// that expire ten minutes after the admission of their last task.
func Standard() Defaults {
	return Defaults{Session: Limit{Turns: new(int64(SessionTurns))}, SessionTTL: SessionTTL}
}

// OrStandard returns *d, or Standard if d is nil.
func OrStandard(d *Defaults) Defaults {
	if d == nil {
		return Standard()
	}
	return *d
}

// Of returns the default limit of a scope.
func (d Defaults) Of(scope string) Limit {
	if _, ok := SessionOf(scope); ok {
		return d.Session
	}
	if _, ok := ProjectOf(scope); ok {
		return d.Project
	}
	if _, ok := KeyOf(scope); ok {
		return d.Key
	}
	if _, ok := RateOf(scope); ok {
		return d.Rate
	}
	if _, ok := OfferOf(scope); ok {
		return d.Offer
	}
	return d.Tenant
}

// Change is the change that a commit makes to each account of a run.
type Change struct {
	Scopes []string
	// Hold is added to the held amount and Release subtracted from it; Spend is added to the
	// spent amount.
	Hold, Release, Spend Amount
	At                   time.Time
	Defaults             Defaults
	// Charge is what the commit adds to the usage of the tenant; nil adds nothing.
	Charge *usage.Charge
}

// Between returns the change from one reservation of a run to the next, in the scopes; nil if
// nothing changes. With these changes, the held and spent amounts of an account are the sums
// over its runs. The limits of defaults apply to the hold.
func Between(scopes []string, heldBefore, usedBefore, held, used Amount, at time.Time, defaults Defaults) *Change {
	if heldBefore == held && usedBefore == used {
		return nil
	}
	more := held.Minus(heldBefore)
	return &Change{
		Scopes: scopes, Hold: more.Positive(), Release: Amount{}.Minus(more).Positive(), Spend: used.Minus(usedBefore),
		At: at, Defaults: defaults,
	}
}

// Move is the change that a commit makes to one account.
type Move struct {
	Tenant, Scope        string
	Hold, Release, Spend Amount
	At                   time.Time
	// Default is the limit of parts without their own, TTL the life of a session or of the account of
	// a key.
	Default Limit
	TTL     time.Duration
}

// Moves returns the change as moves, one for each account of the tenant that it changes. The account
// of a rate counts admissions: it holds the turn of each task, and nothing gives it back.
func (c *Change) Moves(tenant string) []Move {
	if c == nil {
		return nil
	}
	moves := make([]Move, 0, len(c.Scopes))
	for _, scope := range c.Scopes {
		m := Move{
			Tenant: tenant, Scope: scope, Hold: c.Hold, Release: c.Release, Spend: c.Spend, At: c.At, Default: c.Defaults.Of(scope), TTL: c.Defaults.life(scope),
		}
		if _, ok := RateOf(scope); ok {
			if m.Hold, m.Release, m.Spend = (Amount{Turns: c.Hold.Turns}), (Amount{}), (Amount{}); m.Hold.Zero() {
				continue
			}
		}
		moves = append(moves, m)
	}
	return moves
}

// Merge combines the moves of the same account, ordered by tenant and scope. In a merged move,
// a release makes room for a hold.
func Merge(moves []Move) []Move {
	order := func(a, b Move) int { return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Scope, b.Scope)) }
	slices.SortStableFunc(moves, order)
	merged := moves[:0]
	for _, m := range moves {
		last := len(merged) - 1
		if last < 0 || order(merged[last], m) != 0 {
			merged = append(merged, m)
			continue
		}
		into := &merged[last]
		if !m.Hold.Zero() { // the limits that apply are those of a hold
			into.Default, into.TTL = m.Default, m.TTL
		}
		into.Hold, into.Release, into.Spend = into.Hold.Plus(m.Hold), into.Release.Plus(m.Release), into.Spend.Plus(m.Spend)
		if m.At.After(into.At) {
			into.At = m.At
		}
	}
	return merged
}

// Holds reports whether the move holds something. Only such a move creates an account, can be
// refused, and extends a session.
func (m Move) Holds() bool { return !m.Hold.Zero() }

// Used returns the change of the sum of the held and spent amounts.
func (m Move) Used() Amount { return m.Hold.Minus(m.Release).Plus(m.Spend) }

// New returns the account that the move creates.
func (m Move) New() Account { return Account{Tenant: m.Tenant, Scope: m.Scope, CreatedAt: m.At} }

// Expiry returns when the account expires after the move.
func (m Move) Expiry(a Account) time.Time {
	if until := m.At.Add(m.TTL); m.Holds() && m.TTL > 0 && until.After(a.ExpiresAt) {
		return until
	}
	return a.ExpiresAt
}

// Check returns why the account cannot take the move; nil if it can.
func (m Move) Check(a Account) *Shortage {
	if !m.Holds() {
		return nil
	}
	if a.Closed {
		return &Shortage{Scope: a.Scope, Part: Closed}
	}
	if !a.Open(m.At) {
		return &Shortage{Scope: a.Scope, Part: Expired}
	}
	used, more := a.Held.Plus(a.Spent).Values(), m.Used().Values()
	held, spent := a.Held.Values(), a.Spent.Values()
	var short *Shortage
	for i, limit := range a.Limit.Or(m.Default).Values() {
		if limit == nil || used[i]+more[i] <= *limit {
			continue
		}
		part := &Shortage{Scope: a.Scope, Part: Parts()[i], Limit: *limit, Left: max(*limit-used[i], 0), Wait: wait(a.Scope, m.At)}
		if spent[i]+more[i] > *limit || part.Part == Turns {
			return part // the end of other tasks makes no room
		}
		if part.Held = held[i]; short == nil {
			short = part
		}
	}
	return short
}

// Apply returns the account after the move, or the shortage if it cannot take the move.
func (m Move) Apply(a Account) (Account, *Shortage) {
	if short := m.Check(a); short != nil {
		return a, short
	}
	a.ExpiresAt = m.Expiry(a)
	a.Held = a.Held.Minus(m.Release).Plus(m.Hold)
	a.Spent = a.Spent.Plus(m.Spend)
	return a, nil
}
