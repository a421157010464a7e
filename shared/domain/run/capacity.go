package run

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Priority orders the queue of a pool. The zero value means PriorityNormal.
type Priority string

// The priorities, the most urgent one first.
const (
	PriorityInteractive Priority = "interactive"
	PriorityNormal      Priority = "normal"
	PriorityBatch       Priority = "batch"
)

// Priorities lists all priorities, the most urgent one first.
func Priorities() []Priority {
	return []Priority{PriorityInteractive, PriorityNormal, PriorityBatch}
}

// OrNormal returns the priority, and PriorityNormal for the zero value.
func (p Priority) OrNormal() Priority { return cmp.Or(p, PriorityNormal) }

// rank returns the index of the priority, from 0 for the most urgent one.
func (p Priority) rank() int {
	switch p {
	case PriorityInteractive:
		return 0
	case PriorityBatch:
		return 2
	}
	return 1
}

// Concurrency limits the runs with one key, across all jobs of the tenant.
type Concurrency struct {
	Key string `json:"key"`
	// Limit is the number of runs that may hold a slot of the key, at least 1.
	Limit int `json:"limit"`
	// QueueLimit is the number of runs that may wait for a slot of the key; 0 means no limit.
	// Overflow decides about further runs.
	QueueLimit int      `json:"queueLimit,omitempty"`
	Overflow   Overflow `json:"overflow,omitempty"`
}

// Override replaces the priority and the key of a job for one run. Empty fields keep those of
// the job.
type Override struct {
	Priority Priority `json:"priority,omitempty"`
	Key      string   `json:"key,omitempty"`
}

// apply returns the run with the priority and concurrency of its job, as changed by the
// override.
func (o Override) apply(priority Priority, c *Concurrency, r Run) Run {
	r.Priority, r.Concurrency = priority, c
	if o.Priority != "" {
		r.Priority = o.Priority
	}
	if o.Key != "" {
		own := Concurrency{Limit: 1}
		if c != nil {
			own = *c
		}
		own.Key = o.Key
		r.Concurrency = &own
	}
	return r
}

// With returns the run with an override.
func (r Run) With(o Override) Run {
	r.Override = o
	return o.apply(r.Priority, r.Concurrency, r)
}

// Overflow is the rule for a run whose key has a full queue. The zero value means
// OverflowReject.
type Overflow string

// The rules of overflow.
const (
	// OverflowReject refuses the request. A firing is skipped.
	OverflowReject Overflow = "reject"
	// OverflowKeepNewest skips the first queued run of the key.
	OverflowKeepNewest Overflow = "keep_newest"
	// OverflowKeepOldest skips the new run.
	OverflowKeepOldest Overflow = "keep_oldest"
)

// Overflows lists all rules of overflow.
func Overflows() []Overflow {
	return []Overflow{OverflowReject, OverflowKeepNewest, OverflowKeepOldest}
}

// KeyPool returns the name of the pool whose slots limit the concurrent runs of a key. The
// names of other pools contain no slash.
func KeyPool(key string) string { return "key/" + key }

// fairKey returns the Slot.Key of the run: its concurrency key, or the pool of its job. It is
// empty for a run without both, which has a turn of its own.
func (r Run) fairKey() string {
	switch {
	case r.Concurrency != nil:
		return r.Concurrency.Key
	case r.JobID != "":
		return JobPool(r.JobID)
	}
	return ""
}

// SlotOf returns the slot that the run requests from a pool, without a state.
func (r Run) SlotOf(pool string, limit int) Slot {
	return Slot{Pool: pool, Limit: limit, Priority: r.Priority, Key: r.fairKey()}
}

// QueueState describes the queue of a pool for a run that joins it. Runs of one priority are served
// in rounds. Each key has one turn in a round.
type QueueState struct {
	// Head and Tail are the rounds of the first and the last queued run of the priority; 0 if
	// the queue has no such run.
	Head, Tail int64
	// Last is the round of the key's run that joined last, even if it has left the queue.
	// Queued is the number of queued runs of the key. Both are 0 for a run without a key.
	Last   int64
	Queued int
}

// round returns the round of a run that joins the queue. A key has one turn in each round: its
// next run joins the round after its last. A key without queued runs joins the current round,
// unless it has used its turn there. A run without a key joins the current round if no later
// one has begun, and otherwise the next. So runs without a key cannot delay the turns of a key
// without limit.
func (l QueueState) round(key string) int64 {
	switch {
	case l.Head == 0:
		return 1
	case key == "":
		return min(l.Head+1, l.Tail)
	case l.Queued > 0:
		return max(l.Head, min(l.Last, l.Tail)+1)
	case l.Last == l.Head:
		return l.Head + 1
	}
	return l.Head
}

// Joining returns the slot with the time and the round at which it joins the queue.
func (s Slot) Joining(l QueueState, since time.Time) Slot {
	s.Since, s.Round = since, l.round(s.Key)
	if s.Key != "" {
		s.Behind = l.Last
	}
	return s
}

// Turn returns the name of the counter that has the last round of the slot's key in the queue of
// its pool; empty for a slot without a key.
func (s Slot) Turn() string {
	if s.Key == "" {
		return ""
	}
	return strconv.Itoa(s.Priority.rank()) + "#" + s.Key
}

const (
	// firstOrder is the first character of an Order with a round. It sorts after the
	// hexadecimal digits of an Order without one.
	firstOrder = "p"
	roundSize  = 16
)

// Order returns the sort key of a queued slot: priority, round and age. Queues are ordered by
// this text and then by run id. A slot without a round has only its age and comes first. It is
// in the queue of a job, which has no rounds, or was stored by a version without rounds.
func (s Slot) Order() string {
	age := fmt.Sprintf("%016x", orderedNanos(s.Since))
	if s.Round == 0 {
		return age
	}
	return s.Rank() + fmt.Sprintf("%0*x", roundSize, s.Round) + age
}

// Rank returns the common prefix of all Orders with a round and the priority of the slot.
func (s Slot) Rank() string { return firstOrder + strconv.Itoa(s.Priority.rank()) }

// RoundOf returns the round in an Order; 0 for an Order without one.
func RoundOf(order string) int64 {
	if !strings.HasPrefix(order, firstOrder) || len(order) < len(firstOrder)+1+roundSize {
		return 0
	}
	round, err := strconv.ParseInt(order[len(firstOrder)+1:][:roundSize], 16, 64)
	if err != nil {
		return 0
	}
	return round
}

// orderedNanos returns t in Unix nanoseconds, offset so that the smallest 64-bit value is 0.
// Times outside of the range (the years 1678 to 2262) become its first or last value.
func orderedNanos(t time.Time) uint64 {
	const earliest, latest = -1 << 63, 1<<63 - 1
	n := t.UnixNano()
	switch {
	case t.Before(time.Unix(0, earliest)):
		n = earliest
	case t.After(time.Unix(0, latest)):
		n = latest
	}
	return uint64(n) ^ 1<<63 //nolint:gosec // G115: keeps the bits
}
