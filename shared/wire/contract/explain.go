package contract

import (
	"encoding/json"
	"time"
)

// Explanation is the response of GET /v1/runs/{run_id}/explain.
type Explanation struct {
	RunID  string `json:"runId"`
	TaskID string `json:"taskId"`
	JobID  string `json:"jobId,omitempty"`
	State  string `json:"state"`
	RunReasons
	// Graph are the jobs of the graph of the run, each after those that it comes after, with
	// the runs of the graph.
	Graph []GraphJob `json:"graph,omitempty"`
	// Prediction is the prediction that was made at the admission of the present attempt.
	Prediction *Prediction `json:"prediction,omitempty"`
}

// PlanJobRequest is the body of POST /v1/runs:plan for a run of a stored job.
type PlanJobRequest struct {
	JobID string `json:"jobId"`
	// The other members are those of JobRunRequest.
	Parameters     map[string]string          `json:"parameters,omitempty"`
	Inputs         map[string]json.RawMessage `json:"inputs,omitempty"`
	ScheduledAt    time.Time                  `json:"scheduledAt,omitzero"`
	Priority       string                     `json:"priority,omitempty"`
	ConcurrencyKey string                     `json:"concurrencyKey,omitempty"`
}

// Plan is the response of POST /v1/runs:plan: the explanation of a run that does not exist yet.
type Plan struct {
	// Accepted reports whether the run would be accepted.
	Accepted bool `json:"accepted"`
	RunReasons
	// Checks are the constraints that are checked before the run.
	Checks []PlanCheck `json:"checks"`
}

// PlanCheck is a constraint that is checked before a run.
type PlanCheck struct {
	Constraint string `json:"constraint"`
	// Met is absent if the result is not known in advance.
	Met     *bool  `json:"met,omitempty"`
	Message string `json:"message"`
	// Action is the action of the job on a violation.
	Action string `json:"action,omitempty"`
}

// RunReasons contains the reason for a run's state and its expected start.
type RunReasons struct {
	Reason   string         `json:"reason"`
	Message  string         `json:"message"`
	Until    time.Time      `json:"until,omitzero"`
	Limits   []ExplainLimit `json:"limits"`
	Position *int           `json:"position,omitempty"`
	Expected *ExpectedStart `json:"expectedStart,omitempty"`
	Change   *Change        `json:"change,omitempty"`
	// FellBack are the fallbacks of the run since it left its own pool. Fallback are the
	// fallbacks that it can still use if a start is refused.
	FellBack []FellBack     `json:"fellBack,omitempty"`
	Fallback []PoolFallback `json:"fallback,omitempty"`
}

// FellBack is a change of a run to a fallback pool.
type FellBack struct {
	// Attempt is the attempt that the pool From did not serve; 0 before the first one.
	Attempt int    `json:"attempt"`
	From    string `json:"from"`
	To      string `json:"to"`
	// Reason is as in PoolFallback.On. Message is the error message of the platform or the engine.
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

// ExpectedStart is the time at which the machine of a run is expected to run.
type ExpectedStart struct {
	P50 time.Time `json:"p50"`
	P90 time.Time `json:"p90"`
	// Measured is the number of measured runs on which the estimate is based.
	Measured int    `json:"measured"`
	Basis    string `json:"basis"`
}

// Prediction is an expected start with its error.
type Prediction struct {
	At  time.Time `json:"at"`
	P50 time.Time `json:"p50"`
	P90 time.Time `json:"p90"`
	// Measured is the number of measured runs on which the estimate is based.
	Measured int `json:"measured"`
	// StartedAt and ErrorSeconds, the time from P50 to StartedAt, are absent until the start.
	StartedAt    time.Time `json:"startedAt,omitzero"`
	ErrorSeconds *float64  `json:"errorSeconds,omitempty"`
}

// Change is a single change with which a run could start or a job could fire.
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
	// Last is the last firing. Skipped are the skipped firings among those of the newest runs.
	Last    *JobFiring  `json:"last,omitempty"`
	Skipped []JobFiring `json:"skipped"`
	// Upstream are the jobs that the job comes after.
	Upstream []JobUpstream `json:"upstream,omitempty"`
	// Graph are the jobs of the graph of the job, each after those that it comes after.
	Graph  []GraphJob `json:"graph,omitempty"`
	Change *Change    `json:"change,omitempty"`
}

// GraphJob is a job of a graph: of jobs that come after each other.
type GraphJob struct {
	JobID  string       `json:"jobId"`
	Name   string       `json:"name,omitempty"`
	Paused bool         `json:"paused"`
	After  []GraphAfter `json:"after"`
	// RunID and the following members are absent if the job has no run in the graph.
	RunID   string `json:"runId,omitempty"`
	State   string `json:"state,omitempty"`
	Skipped bool   `json:"skipped,omitempty"`
}

// GraphAfter is a job that another one of the graph comes after.
type GraphAfter struct {
	JobID string `json:"jobId"`
	// When is success, failure or always.
	When string `json:"when"`
}

// JobUpstream is a job that another one comes after.
type JobUpstream struct {
	JobID string `json:"jobId"`
	When  string `json:"when"`
	// RunID and State are absent if the job has no run that the other one waits for.
	RunID string `json:"runId,omitempty"`
	State string `json:"state,omitempty"`
	// Met is absent until the run ends.
	Met *bool `json:"met,omitempty"`
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
