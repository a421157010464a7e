package spec

import (
	"cmp"
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

// Rank returns the index of the priority, from 0 for the most urgent one.
func (p Priority) Rank() int {
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

// Apply returns the priority and the concurrency of a job, as changed by the override.
func (o Override) Apply(priority Priority, c *Concurrency) (Priority, *Concurrency) {
	if o.Priority != "" {
		priority = o.Priority
	}
	if o.Key != "" {
		own := Concurrency{Limit: 1}
		if c != nil {
			own = *c
		}
		own.Key = o.Key
		c = &own
	}
	return priority, c
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
