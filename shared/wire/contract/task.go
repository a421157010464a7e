package contract

import (
	"encoding/json"
	"time"
)

// Task is the response of GET /v1/tasks/{task_id}.
type Task struct {
	TaskID  string `json:"taskId"`
	RunID   string `json:"runId"`
	BatchID string `json:"batchId,omitempty"`
	// Labels are those of the job at the creation of the run, with the run's own.
	Labels map[string]string `json:"labels,omitempty"`
	// RetryOf is the task that this task retries.
	RetryOf       string `json:"retryOf,omitempty"`
	CorrelationID string `json:"correlationId"`
	// Kind is "export" (with Format, PI and Options), "job" (with Program) or "inference" (with
	// Inference).
	Kind    string          `json:"kind"`
	Format  string          `json:"format,omitempty"`
	PI      string          `json:"pi,omitempty"`
	Options json.RawMessage `json:"options,omitempty"`
	// Inference is the work of kind inference.
	Inference *InferenceDetails `json:"inference,omitempty"`
	Program   *Program          `json:"program,omitempty"`
	// JobID is the stored job of the run, at JobVersion.
	JobID      string `json:"jobId,omitempty"`
	JobVersion int64  `json:"jobVersion,omitempty"`
	// Trigger is the cause of the run of a job.
	Trigger string `json:"trigger,omitempty"`
	// TriggeredBy is the run whose action trigger_job created this run. It is absent for
	// other runs. Triggered are the runs that this run triggered.
	TriggeredBy *JobRunRef  `json:"triggeredBy,omitempty"`
	Triggered   []JobRunRef `json:"triggered,omitempty"`
	// UntakenActions are the actions that are repeated, because their receiver has not taken them.
	UntakenActions []UntakenAction `json:"untakenActions,omitempty"`
	// FailedActions are the webhooks and notifications that have failed, and can be sent again.
	FailedActions []FailedAction `json:"failedActions,omitempty"`
	// Children are the counts of a run that fans out. Child is the place of a child.
	Children *Children `json:"children,omitempty"`
	Child    *Child    `json:"child,omitempty"`
	// Serves is the replica of an engine that the run is. It is absent for other runs.
	Serves *Serves `json:"serves,omitempty"`
	// Priority is absent for normal. ConcurrencyKey is absent if the run has no key.
	Priority       string `json:"priority,omitempty"`
	ConcurrencyKey string `json:"concurrencyKey,omitempty"`
	// Overflowed is present if the run was skipped because the queue of its key was full.
	Overflowed *Overflowed `json:"overflowed,omitempty"`
	// Skipped reports whether the run completed without an attempt. Missed are the firings that
	// the run records.
	Skipped bool    `json:"skipped,omitempty"`
	Missed  *Missed `json:"missed,omitempty"`
	// Violations are the violated constraints, in the order in which they were found.
	Violations []Violation `json:"violations,omitempty"`
	// Pool is the pool of the run. It is absent before the admission of a run that names no
	// pool. FellBack are its fallbacks since it left its own pool.
	Pool     string     `json:"pool,omitempty"`
	FellBack []FellBack `json:"fellBack,omitempty"`

	Measured Measured `json:"measured"`
	Policy   Policy   `json:"policy"`
	State    string   `json:"state"`
	Attempt  int      `json:"attempt"`
	// FailedAttempts and FailedStarts count towards the retry limits.
	FailedAttempts int         `json:"failedAttempts"`
	FailedStarts   int         `json:"failedStarts"`
	QueuePosition  *int        `json:"queuePosition,omitempty"`
	Machine        *Machine    `json:"machine,omitempty"`
	Progress       *Progress   `json:"progress,omitempty"`
	Worker         *Worker     `json:"worker,omitempty"`
	Cancel         *TaskCancel `json:"cancel,omitempty"`
	Pin            *Pin        `json:"pin,omitempty"`
	// Event is the item that started the run; nil for other runs.
	Event *TriggeringEvent `json:"event,omitempty"`
	// Inputs are the values of the inputs that the job declares.
	Inputs map[string]json.RawMessage `json:"inputs,omitempty"`
	Fault  *Fault                     `json:"fault,omitempty"`
	Output *Output                    `json:"output,omitempty"`
	// Metrics are defined by the worker.
	Metrics     json.RawMessage `json:"metrics,omitempty"`
	CreatedAt   time.Time       `json:"createdAt"`
	EnteredAt   time.Time       `json:"enteredAt"`
	ScheduledAt time.Time       `json:"scheduledAt,omitzero"`
	// FiredAt is the time at which the firing was committed. LatenessSeconds is the time from
	// ScheduledAt to FiredAt.
	FiredAt         time.Time `json:"firedAt,omitzero"`
	LatenessSeconds *float64  `json:"latenessSeconds,omitempty"`
	// StartedAt is the time of the first start of the run's program. AttemptStartedAt is the
	// start of the program in the current attempt. It is absent in the first attempt.
	StartedAt        time.Time `json:"startedAt,omitzero"`
	AttemptStartedAt time.Time `json:"attemptStartedAt,omitzero"`
	EndedAt          time.Time `json:"endedAt,omitzero"`
	RetryAt          time.Time `json:"retryAt,omitzero"`
	// ExpiresAt is absent until the run ends, and while it is held.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// Pin says that a run is kept until it is unpinned.
type Pin struct {
	At time.Time `json:"at"`
	By string    `json:"by"`
}

// JobRunRef identifies a run of a stored job. JobID is absent for other runs.
type JobRunRef struct {
	JobID string `json:"jobId,omitempty"`
	RunID string `json:"runId"`
}

// UntakenAction is an action of a run that its receiver has not taken.
type UntakenAction struct {
	Action string `json:"action"`
	Type   string `json:"type"`
	Tries  int    `json:"tries"`
	// Answer is why the last try was not taken.
	Answer  string    `json:"answer"`
	TriedAt time.Time `json:"triedAt"`
	// NextAt is the time of the next try, GiveUpAt when the action fails instead.
	NextAt   time.Time `json:"nextAt"`
	GiveUpAt time.Time `json:"giveUpAt"`
}

// FailedAction is a webhook or a notification of a job that has failed. It can be sent again.
type FailedAction struct {
	Action string `json:"action"`
	Type   string `json:"type"`
	// Answer is why it failed, and FailedAt when.
	Answer   string    `json:"answer"`
	FailedAt time.Time `json:"failedAt"`
	// Sending means that it is being sent again.
	Sending bool `json:"sending,omitempty"`
}

// RedeliverActionRequest is the optional body of POST /v1/runs/{run_id}/redeliver.
type RedeliverActionRequest struct {
	// Action is the action to send again; empty for all that have failed.
	Action string `json:"action,omitempty"`
}

// Missed are consecutive firings that were skipped together. The first firing is at the
// ScheduledAt of the run.
type Missed struct {
	Reason string    `json:"reason"`
	Count  int       `json:"count"`
	Until  time.Time `json:"until"`
	// By is a run of another job; nil for other reasons.
	By *JobRunRef `json:"by,omitempty"`
}

// Violation is a constraint that a run of a job violates.
type Violation struct {
	Constraint string `json:"constraint"`
	// Message describes the observed value.
	Message   string    `json:"message"`
	Timestamp time.Time `json:"timestamp"`
	// Unchecked reports whether the constraint could not be checked.
	Unchecked bool `json:"unchecked,omitempty"`
}

// Measured contains the metrics of a run. Its terminal event has the final values. The phases
// add up to TotalSeconds, to the millisecond. The current phase of a run that has not ended
// counts until now.
type Measured struct {
	RunID string `json:"runId"`
	// JobID and ScheduledAt are absent if the run has none.
	JobID                    string    `json:"jobId,omitempty"`
	ScheduledAt              time.Time `json:"scheduledAt,omitzero"`
	PreRunSeconds            float64   `json:"preRunSeconds"`
	QueueSeconds             float64   `json:"queueSeconds"`
	ConstraintCheckSeconds   float64   `json:"constraintCheckSeconds"`
	ActionExecutionSeconds   float64   `json:"actionExecutionSeconds"`
	ContainerCreationSeconds float64   `json:"containerCreationSeconds"`
	ExecutionSeconds         float64   `json:"executionSeconds"`
	TerminationSeconds       float64   `json:"terminationSeconds"`
	RetryDelaySeconds        float64   `json:"retryDelaySeconds"`
	TotalSeconds             float64   `json:"totalSeconds"`
	StateTransitionCount     int       `json:"stateTransitionCount"`
	// StateTransitionTimestamps contains the time of the last entry into each state.
	StateTransitionTimestamps map[string]time.Time `json:"stateTransitionTimestamps"`
	ConstraintsChecked        int                  `json:"constraintsChecked"`
	ConstraintsViolated       int                  `json:"constraintsViolated"`
	ActionsExecuted           int                  `json:"actionsExecuted"`
	ActionsFailed             int                  `json:"actionsFailed"`
	// RetryAttempt counts from 0.
	RetryAttempt int `json:"retryAttempt"`
	MaxRetries   int `json:"maxRetries"`
	// StartLatencySeconds is the time from the request for the last machine to its start.
	StartLatencySeconds float64 `json:"startLatencySeconds"`
	ExitCode            *int    `json:"exitCode,omitempty"`
	// HeartbeatsSent counts the heartbeats that were received from the worker.
	HeartbeatsSent int `json:"heartbeatsSent"`
	// PlatformAPICalls is the number of calls to the platforms of the run's machines.
	// KubernetesAPICalls is the number of calls to clusters among them.
	PlatformAPICalls   int `json:"platformApiCalls"`
	KubernetesAPICalls int `json:"kubernetesApiCalls"`
	// FinalState is absent until the run ends.
	FinalState   string `json:"finalState,omitempty"`
	Success      bool   `json:"success"`
	Skipped      bool   `json:"skipped"`
	ErrorMessage string `json:"errorMessage,omitempty"`
}

// RunUpdate is an item of GET /v1/runs/{run_id}/updates: the run after one event.
type RunUpdate struct {
	// UpdateID is a version 5 UUID of the run id and the number of the event.
	UpdateID    string    `json:"updateId"`
	Seq         int       `json:"seq"`
	RunID       string    `json:"runId"`
	JobID       string    `json:"jobId,omitempty"`
	OccurredAt  time.Time `json:"occurredAt"`
	ScheduledAt time.Time `json:"scheduledAt,omitzero"`
	// StartedAt is the start of the attempt's program, CompletedAt the end of the run.
	StartedAt   time.Time `json:"startedAt,omitzero"`
	CompletedAt time.Time `json:"completedAt,omitzero"`
	Status      string    `json:"status"`
	Success     bool      `json:"success"`
	// ExitCode is absent until the program has ended, and if it is unknown.
	ExitCode *int   `json:"exitCode,omitempty"`
	Error    string `json:"error,omitempty"`
	// Logs is the path of the stored log of the attempt.
	Logs string `json:"logs,omitempty"`
	// RetryAttempt counts from 0.
	RetryAttempt int `json:"retryAttempt"`
}

// RunUpdates is a page of the updates of a run, oldest first.
type RunUpdates struct {
	Updates []RunUpdate `json:"updates"`
	// NextAfter is the value of the parameter after for the next page; absent on the
	// last one.
	NextAfter int `json:"nextAfter,omitempty"`
}

// RunAccepted is the response of POST /v1/runs.
type RunAccepted struct {
	TaskID string `json:"taskId"`
	RunID  string `json:"runId"`
	State  string `json:"state"`
}

// Machine is the machine of the current attempt.
type Machine struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
	Exit *Exit  `json:"exit,omitempty"`
}

// Worker is the worker of the current attempt.
type Worker struct {
	ID string `json:"id,omitempty"`
	// LastHeartbeatAt is the time of its last call, while the attempt runs.
	LastHeartbeatAt time.Time `json:"lastHeartbeatAt,omitzero"`
	// Report is the worker's completion. It is absent if the worker used the callback of the
	// export contract.
	Report *WorkerReport `json:"report,omitempty"`
}

// WorkerReport is a worker's completion as stored.
type WorkerReport struct {
	Outcome              string          `json:"outcome"`
	Output               json.RawMessage `json:"output,omitempty"`
	Error                *TaskError      `json:"error,omitempty"`
	CancelledDuringPhase string          `json:"cancelledDuringPhase,omitempty"`
	PartialProgress      json.RawMessage `json:"partialProgress,omitempty"`
}

// Exit is the exit status of a machine's program.
type Exit struct {
	Code   int  `json:"code"`
	Signal int  `json:"signal,omitempty"`
	OOM    bool `json:"oom,omitempty"`
}

// TaskCancel is a recorded cancel request.
type TaskCancel struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
}

// Fault is a failure: its code, who caused it, and whether a retry may help.
type Fault struct {
	Code      string `json:"code"`
	Category  string `json:"category,omitempty"`
	Blame     string `json:"blame"`
	Retryable bool   `json:"retryable"`
	Message   string `json:"message"`
}

// Output is the accepted output of a run.
type Output struct {
	Key         string    `json:"key"`
	FileName    string    `json:"fileName"`
	Size        int64     `json:"size"`
	ETag        string    `json:"etag"`
	ContentType string    `json:"contentType"`
	AcceptedAt  time.Time `json:"acceptedAt"`
	// ExpiresAt is absent while the run is held.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	DeletedAt time.Time `json:"deletedAt,omitzero"`
}

// RetryRequest is the body of the retry of a task: changes for the new task. An absent field
// keeps that of the old one.
type RetryRequest struct {
	Image   string   `json:"image,omitempty"`
	Command []string `json:"command,omitempty"`
	// Parameters are environment variables. They replace those with the same names.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Inputs replace values of the job's inputs.
	Inputs map[string]json.RawMessage `json:"inputs,omitempty"`
	// OnlyFailed runs only those children again that have not succeeded.
	OnlyFailed bool           `json:"onlyFailed,omitempty"`
	Options    *ExportOptions `json:"options,omitempty"`
	Priority   string         `json:"priority,omitempty"`
	// Labels replace those with the same keys. null removes a label.
	Labels map[string]*string `json:"labels,omitempty"`
	// Downstream also reruns the jobs that come after the job of the run.
	Downstream bool `json:"downstream,omitempty"`
}

// CancelRequest is the optional body of POST /v1/tasks/{task_id}/cancel.
type CancelRequest struct {
	// Reason is sent to the worker. It is truncated to 2 KiB.
	Reason string `json:"reason,omitempty"`
}

// The results of a cancel request. A recorded request is never withdrawn.
const (
	// CancelRequested means that the request is recorded and the task will end.
	CancelRequested = "requested"
	// CancelDone means that this or an earlier cancel request ended the task.
	CancelDone = "cancelled"
	// CancelTooLate means that the task had already ended in another way, or that its worker
	// had reported success, which overrides the request.
	CancelTooLate = "too_late"
	// CancelRest means that the task had already ended, and that the jobs that come after its job
	// are cancelled.
	CancelRest = "rest_cancelled"
)

// CancelAnswer is the response to a cancel request.
type CancelAnswer struct {
	TaskID string `json:"taskId"`
	State  string `json:"state"`
	Result string `json:"result"`
	// Message explains the result to a person.
	Message string `json:"message"`
}

// RetryAccepted is the response of POST /v1/tasks/{task_id}/retry: a new task.
type RetryAccepted struct {
	TaskID  string `json:"taskId"`
	RetryOf string `json:"retryOf"`
	State   string `json:"state"`
}

// KeySet is the response of GET /.well-known/jwks.json (RFC 7517). It contains the public keys
// that verify tokens, each as a Key, and those that verify events.
type KeySet struct {
	Keys []json.RawMessage `json:"keys"`
}

// Key is a public ES256 key: a point on P-256 with base64url coordinates.
type Key struct {
	KeyType   string `json:"kty"`
	Curve     string `json:"crv"`
	X         string `json:"x"`
	Y         string `json:"y"`
	KeyID     string `json:"kid"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
}

// TaskList is a page of tasks, newest first.
type TaskList struct {
	Tasks []Task `json:"tasks"`
	// NextCursor is the cursor of the next page. It is absent on the last page.
	NextCursor string `json:"nextCursor,omitempty"`
	// SearchedUntil is the creation time of the last task that was read for the page. The page has
	// all selected tasks that were created after it. It is absent on the last page.
	SearchedUntil time.Time `json:"searchedUntil,omitzero"`
}

// Health is the response of GET /healthz.
type Health struct {
	Status  string `json:"status"`
	Version string `json:"version"`
}

// Overflowed is the reason for a skipped run: the queue of its key was full.
type Overflowed struct {
	// Rule is reject, keep_newest or keep_oldest.
	Rule string `json:"rule"`
	// By is the run that replaced this run (keep_newest), or otherwise the first queued run.
	By string `json:"by,omitempty"`
	// Queued is the number of queued runs at that time.
	Queued int `json:"queued"`
}
