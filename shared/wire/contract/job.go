package contract

import (
	"encoding/json"
	"strings"
	"time"
)

// JobVersion is the response of GET /v1/jobs/{job_id}/versions/{version}, without the
// definition of the job.
type JobVersion struct {
	// Version counts the changes of the definition, from 1.
	Version int64 `json:"version"`
	// UpdatedAt and UpdatedBy are the time and the author of the last change of the definition.
	UpdatedAt time.Time `json:"updatedAt"`
	UpdatedBy string    `json:"updatedBy,omitempty"`
}

// JobState is the response of GET /v1/jobs/{job_id}, without the definition of the job.
type JobState struct {
	JobVersion
	CreatedAt time.Time `json:"createdAt"`
	// Paused reports whether the schedule is paused, PausedAt since when.
	Paused   bool      `json:"paused"`
	PausedAt time.Time `json:"pausedAt,omitzero"`
	// NextAt is the nominal time of the next firing. It is absent if none follows.
	NextAt time.Time `json:"nextAt,omitzero"`
}

// JobSummary is a job in a list.
type JobSummary struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Labels are inherited by the runs of the job.
	Labels map[string]string `json:"labels,omitempty"`

	Pool string `json:"pool,omitempty"`
	// Export is the format of an export job. It is empty for other jobs.
	Export   string `json:"export,omitempty"`
	Image    string `json:"image,omitempty"`
	Schedule string `json:"schedule,omitempty"`
	// Schedules are several expressions in place of Schedule.
	Schedules []string `json:"schedules,omitempty"`
	TimeZone  string   `json:"timeZone,omitempty"`
	// After are the jobs that this one comes after. Sensor: events start the job.
	After  []string `json:"after,omitempty"`
	Sensor bool     `json:"sensor,omitempty"`
	JobState
	// Results are the newest runs, the newest first, as many as the parameter results.
	Results []JobResult `json:"results,omitempty"`
}

// JobResult is a run of a job in a list of jobs. Its times are those of Task.
type JobResult struct {
	RunID     string    `json:"runId"`
	State     string    `json:"state"`
	Skipped   bool      `json:"skipped,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
}

// ScheduleText returns the expressions of the schedule in one text, separated by "; ". It is empty for a
// job that runs only on request.
func (j JobSummary) ScheduleText() string {
	if j.Schedule != "" {
		return j.Schedule
	}
	return strings.Join(j.Schedules, "; ")
}

// Starts returns what starts the job: its schedule with the zone, "after a, b", "on events", or an
// empty text for a job that runs only on request.
func (j JobSummary) Starts() string {
	switch schedule := j.ScheduleText(); {
	case schedule != "":
		return strings.TrimSpace(schedule + " " + j.TimeZone)
	case len(j.After) > 0:
		return "after " + strings.Join(j.After, ", ")
	case j.Sensor:
		return "on events"
	}
	return ""
}

// JobList is a page of jobs, ordered by id.
type JobList struct {
	Jobs []JobSummary `json:"jobs"`
	// NextCursor is the parameter cursor of the next page. It is absent on the last page.
	NextCursor string `json:"nextCursor,omitempty"`
}

// JobRunRequest is the body of POST /v1/jobs/{job_id}/runs.
type JobRunRequest struct {
	// Parameters are environment variables of this run. They override those of the job.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Labels are added to those of the job. They override those with the same keys.
	Labels map[string]string `json:"labels,omitempty"`
	// Inputs are values of the job's inputs: of the declared type, or strings with such a value.
	Inputs map[string]json.RawMessage `json:"inputs,omitempty"`
	// Items replace those of the job. ItemsFrom is a run whose output has them.
	Items     []json.RawMessage `json:"items,omitzero"`
	ItemsFrom string            `json:"itemsFrom,omitempty"`
	// Priority and ConcurrencyKey override those of the job. Absent members do not.
	Priority       string `json:"priority,omitempty"`
	ConcurrencyKey string `json:"concurrencyKey,omitempty"`
	// ScheduledAt makes the run a firing at that time. If absent, the run starts now.
	ScheduledAt time.Time `json:"scheduledAt,omitzero"`
	// Backfill is the name of a backfill. ScheduledAt is then a past time of the schedule.
	Backfill string `json:"backfill,omitempty"`
}

// JobRuns is a page of the runs of a job, newest first.
type JobRuns struct {
	Runs []Task `json:"runs"`
	// NextCursor is the parameter cursor of the next page. It is absent on the last page.
	NextCursor string `json:"nextCursor,omitempty"`
}
