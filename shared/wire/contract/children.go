package contract

import "time"

// Children are the numbers of the children of a run. Those from Waiting to Skipped add up to Total.
type Children struct {
	Total     int `json:"total"`
	Waiting   int `json:"waiting"`
	Running   int `json:"running"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
	// Skipped have not started, because the run had stopped.
	Skipped     int `json:"skipped"`
	MaxParallel int `json:"maxParallel"`
	MaxFailures int `json:"maxFailures"`
	// Stopped is the reason why no further child starts. It is absent while children start.
	Stopped string `json:"stopped,omitempty"`
}

// Child is the place of a run among the children of another one.
type Child struct {
	// Parent is the id of the run with the children. It is absent for a rerun of the child alone.
	Parent string `json:"parent,omitempty"`
	// Index is the index of the item in the list.
	Index int    `json:"index"`
	Item  string `json:"item"`
}

// RunChildren is a page of the children of a run, in the order of the items.
type RunChildren struct {
	Children []RunChild `json:"children"`
	// Counts are absent for a run without children, or whose children have not begun.
	Counts *Children `json:"counts,omitempty"`
	// NextCursor is absent on the last page.
	NextCursor string `json:"nextCursor,omitempty"`
}

// RunChild is a child of a run. The fields from RunID are absent without a run: the child waits or
// is skipped, or its record has expired.
type RunChild struct {
	// Index is the index of the item in the list.
	Index int    `json:"index"`
	Item  string `json:"item"`
	// State is waiting, running, succeeded, failed, cancelled or skipped, as the parent has counted
	// the child.
	State    string `json:"state"`
	RunID    string `json:"runId,omitempty"`
	TaskID   string `json:"taskId,omitempty"`
	RunState string `json:"runState,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`
	ExitCode *int   `json:"exitCode,omitempty"`
	// DurationSeconds is the time since StartedAt, until EndedAt or now.
	StartedAt       time.Time `json:"startedAt,omitzero"`
	EndedAt         time.Time `json:"endedAt,omitzero"`
	DurationSeconds *float64  `json:"durationSeconds,omitempty"`
	Fault           *Fault    `json:"fault,omitempty"`
}
