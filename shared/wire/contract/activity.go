package contract

import "time"

// Activity has figures of the runs that were created in a window.
type Activity struct {
	Window string `json:"window"`
	// Since is the start of the first slot.
	Since time.Time `json:"since"`
	// CountedSince and CountedUntil limit the events that the figures have. They are Since and the
	// time of the request, unless Complete is false.
	CountedSince time.Time `json:"countedSince"`
	CountedUntil time.Time `json:"countedUntil"`
	// Complete reports that all events are counted. GroupsComplete reports that Failures and Work
	// have all groups.
	Complete       bool           `json:"complete"`
	GroupsComplete bool           `json:"groupsComplete"`
	Runs           ActivityCounts `json:"runs"`
	// Slots are all slots of the window, the oldest first.
	Slots    []ActivitySlot    `json:"slots"`
	Failures []ActivityFailure `json:"failures"`
	Work     []ActivityWork    `json:"work"`
}

// ActivityCounts are numbers of runs by outcome.
type ActivityCounts struct {
	Created   int `json:"created"`
	UnderWay  int `json:"underWay"`
	Completed int `json:"completed"`
	Skipped   int `json:"skipped"`
	Cancelled int `json:"cancelled"`
	Failed    int `json:"failed"`
	// Children are left out of the other numbers.
	Children int `json:"children,omitempty"`
}

// ActivitySlot has the runs that were created from From until before Until.
type ActivitySlot struct {
	From  time.Time      `json:"from"`
	Until time.Time      `json:"until"`
	Runs  ActivityCounts `json:"runs"`
	// Spent is what the budget of the tenant had spent in all, at the last inference task that was
	// counted in the slot; nil without one.
	Spent *BudgetUse `json:"spent,omitempty"`
}

// ActivityFailure is a group of failures with the same code, state and work.
type ActivityFailure struct {
	Code string `json:"code"`
	// State is Failed or Orphaned.
	State string `json:"state"`
	// Kind is the kind of the runs. JobID is their stored job; empty for runs without one.
	Kind  string `json:"kind"`
	JobID string `json:"jobId,omitempty"`
	Runs  int    `json:"runs"`
	// FirstAt and LastAt are the times of the first and the last failure. LastRunID and
	// LastMessage are those of the last.
	FirstAt     time.Time `json:"firstAt"`
	LastAt      time.Time `json:"lastAt"`
	LastRunID   string    `json:"lastRunId"`
	LastMessage string    `json:"lastMessage,omitempty"`
}

// ActivityWork has the figures of the runs of a job, or of a kind, that have ended without a skip.
type ActivityWork struct {
	Kind   string `json:"kind"`
	JobID  string `json:"jobId,omitempty"`
	Runs   int    `json:"runs"`
	Failed int    `json:"failed"`
	// FirstAttemptFailed is the number of runs whose first attempt failed.
	FirstAttemptFailed int `json:"firstAttemptFailed"`
	// P50Seconds and P95Seconds are durations of last attempts, off by at most a tenth; 0 without
	// an attempt.
	P50Seconds float64 `json:"p50Seconds"`
	P95Seconds float64 `json:"p95Seconds"`
}
