package contract

import "time"

// JobVersion is what GET /v1/jobs/{job_id}/versions/{version} returns beside the
// definition of the job.
type JobVersion struct {
	// Version counts the changes of the definition, from 1.
	Version int64 `json:"version"`
	// UpdatedAt and UpdatedBy are of the change of the definition.
	UpdatedAt time.Time `json:"updatedAt"`
	UpdatedBy string    `json:"updatedBy,omitempty"`
}

// JobState is what GET /v1/jobs/{job_id} returns beside the definition of the job.
type JobState struct {
	JobVersion
	CreatedAt time.Time `json:"createdAt"`
	// Paused: the schedule does not fire. PausedAt is since when.
	Paused   bool      `json:"paused"`
	PausedAt time.Time `json:"pausedAt,omitzero"`
	// NextAt is the nominal time of the next firing; absent if no firing follows.
	NextAt time.Time `json:"nextAt,omitzero"`
}

// JobSummary is a job in a list.
type JobSummary struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	Pool string `json:"pool,omitempty"`
	// Export is the format of a job that exports; empty for another job.
	Export   string `json:"export,omitempty"`
	Image    string `json:"image,omitempty"`
	Schedule string `json:"schedule,omitempty"`
	TimeZone string `json:"timeZone,omitempty"`
	JobState
}

// JobList is a page of jobs, ordered by id.
type JobList struct {
	Jobs []JobSummary `json:"jobs"`
	// NextCursor is the value of the parameter cursor for the next page; absent on the
	// last one.
	NextCursor string `json:"nextCursor,omitempty"`
}

// JobRunRequest is the body of POST /v1/jobs/{job_id}/runs.
type JobRunRequest struct {
	// Parameters are environment variables of this run. They replace those of the job.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Priority and ConcurrencyKey replace those of the job; absent keeps them.
	Priority       string `json:"priority,omitempty"`
	ConcurrencyKey string `json:"concurrencyKey,omitempty"`
	// ScheduledAt makes the run a firing at that time; absent starts it now.
	ScheduledAt time.Time `json:"scheduledAt,omitzero"`
}

// JobRuns is a page of the runs of a job, newest first.
type JobRuns struct {
	Runs []Task `json:"runs"`
	// NextCursor is the value of the parameter cursor for the next page; absent on the
	// last one.
	NextCursor string `json:"nextCursor,omitempty"`
}
