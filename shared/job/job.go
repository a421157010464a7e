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
	// Version counts the changes of the definition, from 1. Revision counts the
	// commits of the record, from 1; a commit is conditional on it.
	Version int64 `json:"version"`
	// FirstVersion is above every version of a deleted job with the id; 0 is 1.
	FirstVersion int64      `json:"firstVersion,omitempty"`
	Revision     int64      `json:"revision"`
	Definition   Definition `json:"definition"`
	// Workspace is that of the runs; empty is the tenant.
	Workspace string `json:"workspace,omitempty"`

	CreatedAt time.Time `json:"createdAt"`
	// UpdatedAt and UpdatedBy are of the last change of the definition.
	UpdatedAt time.Time `json:"updatedAt"`
	UpdatedBy string    `json:"updatedBy,omitempty"`
	// Exec: the one who stored the definition had the scope exec.
	Exec bool `json:"exec,omitempty"`
	// Paused: the schedule does not fire. PausedAt is since when; zero otherwise.
	Paused   bool      `json:"paused,omitempty"`
	PausedAt time.Time `json:"pausedAt,omitzero"`
	// ResumedAt is the end of the last pause. A firing of that time or before was
	// missed.
	ResumedAt time.Time `json:"resumedAt,omitzero"`
	// ClearedAt: requirePreviousSuccess looks past the runs that ended by then; zero for
	// none.
	ClearedAt time.Time `json:"clearedAt,omitzero"`

	// Since is the time after which the schedule counts, in whole seconds.
	Since time.Time `json:"since,omitzero"`
	// NextAt is the nominal time of the next firing, WakeAt when it is to be
	// committed: NextAt and the jitter. They are zero if the job does not fire by itself.
	NextAt time.Time `json:"nextAt,omitzero"`
	WakeAt time.Time `json:"wakeAt,omitzero"`
	// InTurn is the newest of the times that MissedAll made up for last. The runs of these
	// times start one after the other where the job's limit demands that.
	InTurn time.Time `json:"inTurn,omitzero"`
}

// Ref returns the job's tenant and id.
func (j Job) Ref() Ref { return Ref{j.Tenant, j.ID} }
