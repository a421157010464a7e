package contract

import "time"

// Explanation is the response of GET /v1/runs/{run_id}/explain.
type Explanation struct {
	RunID  string `json:"runId"`
	TaskID string `json:"taskId"`
	JobID  string `json:"jobId,omitempty"`
	State  string `json:"state"`
	RunReasons
	// Prediction is what was expected at the admission of the present attempt.
	Prediction *Prediction `json:"prediction,omitempty"`
}

// PlanJobRequest is the body of POST /v1/runs:plan for a run of a stored job.
type PlanJobRequest struct {
	JobID string `json:"jobId"`
	// The others are those of JobRunRequest.
	Parameters     map[string]string `json:"parameters,omitempty"`
	ScheduledAt    time.Time         `json:"scheduledAt,omitzero"`
	Priority       string            `json:"priority,omitempty"`
	ConcurrencyKey string            `json:"concurrencyKey,omitempty"`
}

// Plan is the response of POST /v1/runs:plan: the explanation of a run that does not
// exist.
type Plan struct {
	// Accepted is false for a run that would be refused.
	Accepted bool `json:"accepted"`
	RunReasons
	// Checks are the constraints before the run.
	Checks []PlanCheck `json:"checks"`
}

// PlanCheck is a constraint before a run.
type PlanCheck struct {
	Constraint string `json:"constraint"`
	// Met is absent if the result is not known before the run.
	Met     *bool  `json:"met,omitempty"`
	Message string `json:"message"`
	// Action is what happens if it is violated.
	Action string `json:"action,omitempty"`
}

// RunReasons has the reason for a run's state and its expected start.
type RunReasons struct {
	Reason   string         `json:"reason"`
	Message  string         `json:"message"`
	Until    time.Time      `json:"until,omitzero"`
	Limits   []ExplainLimit `json:"limits"`
	Position *int           `json:"position,omitempty"`
	Expected *ExpectedStart `json:"expectedStart,omitempty"`
	Change   *Change        `json:"change,omitempty"`
	// FellBack are the fallbacks of the run since it left its own pool, Fallback those
	// that a start which is refused can still use.
	FellBack []FellBack     `json:"fellBack,omitempty"`
	Fallback []PoolFallback `json:"fallback,omitempty"`
}

// FellBack is a fallback that a run has taken.
type FellBack struct {
	// Attempt is the attempt that got no machine in the pool From.
	Attempt int    `json:"attempt"`
	From    string `json:"from"`
	To      string `json:"to"`
	// Reason is capacity, image or throttled. Message is the answer of the platform.
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}

// ExplainLimit is a limit that applies to a run.
type ExplainLimit struct {
	Kind    string   `json:"kind"`
	Name    string   `json:"name,omitempty"`
	Used    int      `json:"used"`
	Allowed int      `json:"allowed"`
	Queued  int      `json:"queued"`
	Holders []Holder `json:"holders"`
}

// Holder is a run that holds a slot.
type Holder struct {
	RunID      string    `json:"runId"`
	TaskID     string    `json:"taskId"`
	JobID      string    `json:"jobId,omitempty"`
	State      string    `json:"state"`
	Since      time.Time `json:"since"`
	Cancelling bool      `json:"cancelling"`
}

// ExpectedStart is when the machine of a run is expected to run.
type ExpectedStart struct {
	P50 time.Time `json:"p50"`
	P90 time.Time `json:"p90"`
	// Measured is the number of measured runs that it is made of.
	Measured int    `json:"measured"`
	Basis    string `json:"basis"`
}

// Prediction is an expected start and its error.
type Prediction struct {
	At  time.Time `json:"at"`
	P50 time.Time `json:"p50"`
	P90 time.Time `json:"p90"`
	// Measured is the number of measured runs that it is made of.
	Measured int `json:"measured"`
	// StartedAt and ErrorSeconds, from P50 to it, are absent until the start.
	StartedAt    time.Time `json:"startedAt,omitzero"`
	ErrorSeconds *float64  `json:"errorSeconds,omitempty"`
}

// Change is a single change that lets a run start, or a job fire.
type Change struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	From    *int   `json:"from,omitempty"`
	To      *int   `json:"to,omitempty"`
	Message string `json:"message"`
}

// JobExplanation is the response of GET /v1/jobs/{job_id}/explain.
type JobExplanation struct {
	JobID   string    `json:"jobId"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	NextAt  time.Time `json:"nextAt,omitzero"`
	WakeAt  time.Time `json:"wakeAt,omitzero"`
	// Last is the last firing, Skipped are those of the newest runs that were skipped.
	Last    *JobFiring  `json:"last,omitempty"`
	Skipped []JobFiring `json:"skipped"`
	Change  *Change     `json:"change,omitempty"`
}

// JobFiring is a firing of a job.
type JobFiring struct {
	RunID       string    `json:"runId"`
	ScheduledAt time.Time `json:"scheduledAt"`
	State       string    `json:"state"`
	Skipped     bool      `json:"skipped"`
	Reason      string    `json:"reason"`
	Message     string    `json:"message"`
}
