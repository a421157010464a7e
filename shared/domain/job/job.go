package job

import "time"

// Ref identifies a job by its tenant and its id.
type Ref struct {
	Tenant string `json:"tenant"`
	ID     string `json:"jobId"`
}

// Job is the record of a stored job. Records are never changed in place, so copies
// may share slices and pointers.
type Job struct {
	Tenant string `json:"tenant"`
	ID     string `json:"jobId"`
	// Version counts the changes of the definition, from 1. Revision counts the commits of the
	// record, from 1; a commit is conditional on it.
	Version int64 `json:"version"`
	// FirstVersion is greater than every version of a deleted job with the same id; 0 means 1.
	FirstVersion int64      `json:"firstVersion,omitempty"`
	Revision     int64      `json:"revision"`
	Definition   Definition `json:"definition"`
	// Workspace is the workspace of the runs; empty means the tenant.
	Workspace string `json:"workspace,omitempty"`

	CreatedAt time.Time `json:"createdAt"`
	// UpdatedAt and UpdatedBy describe the last change of the definition.
	UpdatedAt time.Time `json:"updatedAt"`
	UpdatedBy string    `json:"updatedBy,omitempty"`
	// Exec: the client that stored the definition had the scope exec.
	Exec bool `json:"exec,omitempty"`
	// Paused: the schedule does not fire. PausedAt is the start of the pause; zero otherwise.
	Paused   bool      `json:"paused,omitempty"`
	PausedAt time.Time `json:"pausedAt,omitzero"`
	// ResumedAt is the end of the last pause. Firings up to that time were missed.
	ResumedAt time.Time `json:"resumedAt,omitzero"`
	// ClearedAt: requirePreviousSuccess ignores runs that ended by this time; zero if it
	// ignores none.
	ClearedAt time.Time `json:"clearedAt,omitzero"`

	// Followers are the jobs that name this one in After. An entry may be stale: the definition of
	// the other job decides.
	Followers []string `json:"followers,omitempty"`

	// Since is the start of the schedule, in whole seconds: only later times count.
	Since time.Time `json:"since,omitzero"`
	// NextAt is the nominal time of the next firing. WakeAt is when it must be committed:
	// NextAt plus the job's delay. They are zero if the job does not fire by itself; WakeAt
	// also while it is paused.
	NextAt time.Time `json:"nextAt,omitzero"`
	WakeAt time.Time `json:"wakeAt,omitzero"`
	// InTurn is the newest firing of the last catch-up with MissedAll. If the job has a limit, the
	// runs of firings up to this time start in order, as its slots permit.
	InTurn time.Time `json:"inTurn,omitzero"`
}

// Ref returns the job's tenant and id.
func (j Job) Ref() Ref { return Ref{j.Tenant, j.ID} }
