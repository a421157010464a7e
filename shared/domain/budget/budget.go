// Package budget accounts for what the attempts of runs may use and have used: turns, tokens,
// time and cost.
//
// An [Account] has the limits and the usage of one scope: a tenant, a project, a session or a key. An
// admission holds an amount in all scopes of a run, or in none. The end of the attempt releases
// that amount and spends what was used. Only a hold is checked against limits, so a settlement
// never fails. An account with a limit can be overdrawn only by an attempt that used more than
// it held, which is possible only for time.
//
// The package is pure: stores apply a [Move] to an account in the transaction of the run.
//
// A new part of a limit is a field of [Amount], with its default in [Defaults]; package run fills it
// in ledger.go, and package app/setting reads the default. Clients see it through
// wire/contract/budget.go and wire/api/budget.go, and the stores keep it without a change.
package budget

import (
	"fmt"
	"strings"
	"time"
)

// MostLimit is the maximum of each part of a limit.
const MostLimit = 1_000_000_000_000_000

// Amount is a quantity of each part. The zero value is an empty amount.
type Amount struct {
	// Turns is the number of tasks.
	Turns  int64 `json:"turns,omitempty"`
	Tokens int64 `json:"tokens,omitempty"`
	// TimeMS is the generation time, in milliseconds.
	TimeMS int64 `json:"timeMs,omitempty"`
	// CostNano is the cost, in billionths of a dollar.
	CostNano int64 `json:"costNano,omitempty"`
}

// Part is a part of an amount.
type Part string

// The parts, and Expired and Closed for a session that accepts no more tasks.
const (
	Turns   Part = "turns"
	Tokens  Part = "tokens"
	Time    Part = "timeMs"
	Cost    Part = "cost"
	Expired Part = "expired"
	Closed  Part = "closed"
)

// parts is the number of parts. Parts returns their names, in the order of Values.
const parts = 4

// Parts returns the names of the parts, in the order of Amount.Values.
func Parts() [parts]Part { return [parts]Part{Turns, Tokens, Time, Cost} }

// Values returns the parts of the amount.
func (a Amount) Values() [parts]int64 { return [parts]int64{a.Turns, a.Tokens, a.TimeMS, a.CostNano} }

// AmountOf returns the amount with the values, in the order of Values.
func AmountOf(v [parts]int64) Amount {
	return Amount{Turns: v[0], Tokens: v[1], TimeMS: v[2], CostNano: v[3]}
}

// Zero reports whether all parts are zero.
func (a Amount) Zero() bool { return a == Amount{} }

// Plus returns the sum.
func (a Amount) Plus(b Amount) Amount {
	return Amount{a.Turns + b.Turns, a.Tokens + b.Tokens, a.TimeMS + b.TimeMS, a.CostNano + b.CostNano}
}

// Minus returns the difference, which may be negative.
func (a Amount) Minus(b Amount) Amount {
	return Amount{a.Turns - b.Turns, a.Tokens - b.Tokens, a.TimeMS - b.TimeMS, a.CostNano - b.CostNano}
}

// Positive returns the amount with negative parts set to zero.
func (a Amount) Positive() Amount {
	return Amount{max(a.Turns, 0), max(a.Tokens, 0), max(a.TimeMS, 0), max(a.CostNano, 0)}
}

// AtLeast returns the amount with each part at least that of b.
func (a Amount) AtLeast(b Amount) Amount {
	return Amount{max(a.Turns, b.Turns), max(a.Tokens, b.Tokens), max(a.TimeMS, b.TimeMS), max(a.CostNano, b.CostNano)}
}

// Within returns the amount with turns, tokens and cost limited to those of held, because an
// attempt is stopped at its reservation. The time stays as measured.
func (a Amount) Within(held Amount) Amount {
	return Amount{min(a.Turns, held.Turns), min(a.Tokens, held.Tokens), a.TimeMS, min(a.CostNano, held.CostNano)}
}

// Dollars converts nano-dollars to dollars.
func Dollars(nano int64) float64 { return float64(nano) / 1e9 }

// Limit is the maximum that an account may hold and have spent together. A nil part has no
// limit.
type Limit struct {
	Turns    *int64 `json:"turns,omitempty"`
	Tokens   *int64 `json:"tokens,omitempty"`
	TimeMS   *int64 `json:"timeMs,omitempty"`
	CostNano *int64 `json:"costNano,omitempty"`
}

// Values returns the parts of the limit; nil means no limit.
func (l Limit) Values() [parts]*int64 {
	return [parts]*int64{l.Turns, l.Tokens, l.TimeMS, l.CostNano}
}

// Or returns the limit with nil parts replaced by those of standard.
func (l Limit) Or(standard Limit) Limit {
	pick := func(part, other *int64) *int64 {
		if part != nil {
			return part
		}
		return other
	}
	return Limit{
		pick(l.Turns, standard.Turns), pick(l.Tokens, standard.Tokens), pick(l.TimeMS, standard.TimeMS), pick(l.CostNano, standard.CostNano),
	}
}

// Least returns the lower limit of each part. A nil part is no limit, so the other one applies.
func (l Limit) Least(other Limit) Limit {
	pick := func(a, b *int64) *int64 {
		if a == nil || b != nil && *b < *a {
			return b
		}
		return a
	}
	return Limit{pick(l.Turns, other.Turns), pick(l.Tokens, other.Tokens), pick(l.TimeMS, other.TimeMS), pick(l.CostNano, other.CostNano)}
}

// Scopes of accounts: ScopeTenant, or a prefix with the id of a project, a session or a key.
const (
	ScopeTenant = "tenant"
	project     = "project:"
	session     = "session:"
)

// ProjectScope returns the scope of a project's account: project:ID.
func ProjectScope(id string) string { return project + id }

// SessionScope returns the scope of a session's account: session:ID.
func SessionScope(id string) string { return session + id }

// SessionOf returns the session id of a scope; ok is false for other scopes.
func SessionOf(scope string) (id string, ok bool) { return strings.CutPrefix(scope, session) }

// ProjectOf returns the project id of a scope; ok is false for other scopes.
func ProjectOf(scope string) (id string, ok bool) { return strings.CutPrefix(scope, project) }

// Retention is how long the account of an expired session is kept, closed or not: until then
// its id cannot be reused. It is longer than any attempt.
const Retention = 24 * time.Hour

// Account has the limit and the usage of one scope of a tenant. It is a value.
type Account struct {
	Tenant string `json:"tenant"`
	Scope  string `json:"scope"`
	// Limit has the parts that were set for this account. The other parts have the default
	// limit of the deployment.
	Limit Limit  `json:"limit,omitzero"`
	Held  Amount `json:"held,omitzero"`
	Spent Amount `json:"spent,omitzero"`
	// Version counts the changes of Limit.
	Version   int64     `json:"version,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	// ExpiresAt is when a session accepts no more tasks; zero for other accounts. It only moves
	// to later times.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	// Closed: the session accepts no more tasks, not even those that were decided before.
	Closed bool `json:"closed,omitempty"`
}

// Open reports whether the account accepts tasks at the time at, apart from its limits.
func (a Account) Open(at time.Time) bool {
	return !a.Closed && (a.ExpiresAt.IsZero() || at.Before(a.ExpiresAt))
}

// PurgeAt returns when the account can be deleted; zero means never.
func (a Account) PurgeAt() time.Time {
	if a.ExpiresAt.IsZero() {
		return time.Time{}
	}
	return a.ExpiresAt.Add(Retention)
}

// Left returns what remains of the limit; nil for a part without one. standard is the default
// limit of the scope. A part that is overdrawn, or whose limit was lowered, is 0.
func (a Account) Left(standard Limit) Limit {
	used, limit := a.Held.Plus(a.Spent).Values(), a.Limit.Or(standard).Values()
	var left [parts]*int64
	for i, most := range limit {
		if most != nil {
			left[i] = new(max(*most-used[i], 0))
		}
	}
	return Limit{left[0], left[1], left[2], left[3]}
}

// Shortage says why an account cannot hold an amount.
type Shortage struct {
	Scope string
	Part  Part
	// Limit is the limit of the part, Left what remains of it. Both are 0 for Expired and
	// Closed.
	Limit, Left int64
	// Held is the amount of the part that unfinished tasks hold, if their end can make room;
	// otherwise 0.
	Held int64
	// Wait is the time until the key has requests left, in a RateScope; otherwise 0.
	Wait time.Duration
}

func (s Shortage) String() string {
	switch s.Part {
	case Expired:
		return s.Scope + " has expired"
	case Closed:
		return s.Scope + " was closed"
	}
	text := fmt.Sprintf("%s has %d left of its limit of %d %s", s.Scope, s.Left, s.Limit, s.unit())
	if s.Held > 0 {
		text += fmt.Sprintf(", and tasks that have not ended hold %d; retry when they have", s.Held)
	}
	return text
}

// unit returns the unit of the part, for messages.
func (s Shortage) unit() string {
	switch s.Part {
	case Time:
		return "milliseconds"
	case Cost:
		return "nano-dollars"
	default:
		return string(s.Part)
	}
}

// SessionClosed reports whether the session accepts no more tasks: it has expired, was closed,
// or has used its last turn.
func (s Shortage) SessionClosed() bool {
	_, ok := SessionOf(s.Scope)
	return ok && (s.Part == Expired || s.Part == Closed || s.Part == Turns)
}
