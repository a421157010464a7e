// Package usage counts what the inference tasks of a tenant have used, by day, model, key and
// session.
//
// A commit that charges a task adds one [Entry] for its day, model and key, and a second one for
// its session if it has one. The entries are part of the transaction that changes the accounts of
// budgets, so each charge is counted exactly once. Without other changes, the tasks, the time and
// the cost of all entries of a tenant, without those of [KeyShadow], are what its account has spent.
//
// The package is pure. Stores add entries; package app/usages groups them.
package usage

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Retention is how long an entry is kept, from its day.
const Retention = 400 * 24 * time.Hour

// Tokens counts the tokens of a task.
type Tokens struct {
	// Input is the number of tokens of the prompt. Cached is the part of it that the engine has
	// read from its cache, if the engine reports it.
	Input  int64 `json:"input,omitempty"`
	Cached int64 `json:"cached,omitempty"`
	Output int64 `json:"output,omitempty"`
}

// Plus returns the sum.
func (t Tokens) Plus(o Tokens) Tokens {
	return Tokens{t.Input + o.Input, t.Cached + o.Cached, t.Output + o.Output}
}

// Minus returns the difference, which may be negative.
func (t Tokens) Minus(o Tokens) Tokens {
	return Tokens{t.Input - o.Input, t.Cached - o.Cached, t.Output - o.Output}
}

// Sum is what tasks have used.
type Sum struct {
	// Tasks is the number of tasks with an answer.
	Tasks int64 `json:"tasks,omitempty"`
	Tokens
	// TimeMS is the generation time, in milliseconds.
	TimeMS int64 `json:"timeMs,omitempty"`
	// CostNano is the cost, in billionths of a dollar.
	CostNano int64 `json:"costNano,omitempty"`
}

// Plus returns the sum of both.
func (s Sum) Plus(o Sum) Sum {
	return Sum{s.Tasks + o.Tasks, s.Tokens.Plus(o.Tokens), s.TimeMS + o.TimeMS, s.CostNano + o.CostNano}
}

// Minus returns the difference, which may be negative.
func (s Sum) Minus(o Sum) Sum {
	return Sum{s.Tasks - o.Tasks, s.Tokens.Minus(o.Tokens), s.TimeMS - o.TimeMS, s.CostNano - o.CostNano}
}

// Zero reports whether all counts are 0.
func (s Sum) Zero() bool { return s == Sum{} }

// values is the number of counts of a Sum.
const values = 6

// Values returns the counts, in the order of the fields.
func (s Sum) Values() [values]int64 {
	return [values]int64{s.Tasks, s.Input, s.Cached, s.Output, s.TimeMS, s.CostNano}
}

// SumOf returns the sum with the counts, in the order of Values.
func SumOf(v [values]int64) Sum {
	return Sum{Tasks: v[0], Tokens: Tokens{v[1], v[2], v[3]}, TimeMS: v[4], CostNano: v[5]}
}

// Name is what an entry or a group of entries is about. In a group, the parts by which it does not
// group are empty.
type Name struct {
	// Day is the UTC day of the charge, for example 2026-11-29.
	Day   string `json:"day,omitempty"`
	Model string `json:"model,omitempty"`
	// Key is the name of the client's token, or the subject of a client without one.
	Key string `json:"key,omitempty"`
	// Session is empty in an entry for all sessions of the other parts.
	Session string `json:"session,omitempty"`
}

// KeyShadow is the key of shadow traffic, which no client has requested and no budget pays. No token
// has this name.
const KeyShadow = "shadow traffic"

// dayForm is the form of Name.Day.
const dayForm = time.DateOnly

// DayOf returns the day of a time.
func DayOf(at time.Time) string { return at.UTC().Format(dayForm) }

// ParseDay returns the first instant of a day.
func ParseDay(text string) (time.Time, error) { return time.Parse(dayForm, text) }

// ID returns the name as one string of printable ASCII without spaces. The order of ids is by day
// first. A '#' follows the day.
func (n Name) ID() string {
	return n.Day + "#" + url.PathEscape(n.Model) + "#" + url.PathEscape(n.Key) + "#" + url.PathEscape(n.Session)
}

var errID = errors.New("malformed id of a usage")

// ParseID parses the result of Name.ID.
func ParseID(id string) (Name, error) {
	parts := strings.Split(id, "#")
	if len(parts) != 4 {
		return Name{}, errID
	}
	for i, p := range parts {
		text, err := url.PathUnescape(p)
		if err != nil {
			return Name{}, errID
		}
		parts[i] = text
	}
	return Name{parts[0], parts[1], parts[2], parts[3]}, nil
}

// PurgeAt returns when the entries of a day can be deleted.
func (n Name) PurgeAt() time.Time {
	day, err := ParseDay(n.Day)
	if err != nil {
		return time.Time{}
	}
	return day.Add(Retention)
}

// Entry is what the tasks of a tenant have used under one name.
type Entry struct {
	Tenant string
	Name
	Sum
}

// Charge is what a commit charges a task. At is its time.
type Charge struct {
	Model, Key, Session string
	Sum
	At time.Time
}

// Entries returns the entries of a charge: one for all sessions, and one for the session of the
// task. A nil charge has none.
func (c *Charge) Entries(tenant string) []Entry {
	if c == nil || c.Zero() {
		return nil
	}
	all := Entry{tenant, Name{Day: DayOf(c.At), Model: c.Model, Key: c.Key}, c.Sum}
	if c.Session == "" {
		return []Entry{all}
	}
	own := all
	own.Session = c.Session
	return []Entry{all, own}
}

// Merge adds the entries of the same tenant and name, ordered by both.
func Merge(entries []Entry) []Entry {
	order := func(a, b Entry) int { return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID(), b.ID())) }
	slices.SortStableFunc(entries, order)
	merged := entries[:0]
	for _, e := range entries {
		if last := len(merged) - 1; last >= 0 && order(merged[last], e) == 0 {
			merged[last].Sum = merged[last].Plus(e.Sum)
			continue
		}
		merged = append(merged, e)
	}
	return merged
}
