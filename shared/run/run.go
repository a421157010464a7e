package run

import (
	"encoding/json"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
)

// Ref finds a run: its tenant and its id.
type Ref struct {
	Tenant string `json:"tenant"`
	ID     string `json:"runId"`
}

// Run is the record of one run. A copy of it is a snapshot: nothing below
// changes a record in place, so slices and pointers may be shared by copies.
type Run struct {
	Tenant string `json:"tenant"`
	// ID is the run_id; for an ad-hoc run it is the TaskID.
	ID string `json:"runId"`
	// TaskID is the public handle, stable over attempts.
	TaskID        string `json:"taskId"`
	Workspace     string `json:"workspace"`
	BatchID       string `json:"batchId,omitempty"`
	CorrelationID string `json:"correlationId"`
	// RetryOf is the task that this run was made of on request; empty for the
	// first of its kind.
	RetryOf string `json:"retryOf,omitempty"`
	Work    Work   `json:"work"`
	Policy  Policy `json:"policy"`

	State State `json:"state"`
	// Version counts the commits of the record, from 1. The store holds a
	// commit against it.
	Version int64 `json:"version"`
	// EventCount is the number of the last event.
	EventCount int `json:"eventCount"`

	CreatedAt   time.Time `json:"createdAt"`
	ScheduledAt time.Time `json:"scheduledAt,omitzero"`
	// EnteredAt is when the run came into its state.
	EnteredAt time.Time `json:"enteredAt"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	// ExpiresAt is when the record is to be forgotten; zero while it lives.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`

	Attempt   Attempt        `json:"attempt"`
	Spent     Spent          `json:"spent"`
	Slot      Slot           `json:"slot"`
	Wait      Wait           `json:"wait"`
	Execution Execution      `json:"execution"`
	Cancel    *CancelRequest `json:"cancel,omitempty"`
	// Constrained: the run has constraints, which are checked before its first
	// attempt.
	Constrained bool `json:"constrained,omitempty"`
	// RetryAt is when the next attempt may start, in Retrying.
	RetryAt time.Time `json:"retryAt,omitzero"`

	// Output is set once the result was verified and kept.
	Output *Output `json:"output,omitempty"`
	// Logs are the attempts whose logs are kept, until the record expires.
	Logs []int `json:"logs,omitempty"`
	// Fault says why the last attempt failed, and at the end why the run did.
	Fault *fault.Fault `json:"fault,omitempty"`
}

// BytesLeft says whether bytes of the run are kept: its output, or logs.
func (r Run) BytesLeft() bool {
	return r.Output != nil && r.Output.DeletedAt.IsZero() || len(r.Logs) > 0
}

// BytesDue is when bytes that are kept of the run are to be deleted next: the
// output when it expires, the logs with the record. Zero where there are none,
// or while nobody knows.
func (r Run) BytesDue() time.Time {
	var due time.Time
	if r.Output != nil && r.Output.DeletedAt.IsZero() {
		due = r.Output.ExpiresAt
	}
	if len(r.Logs) > 0 && (due.IsZero() || r.ExpiresAt.Before(due)) {
		due = r.ExpiresAt
	}
	return due
}

// Ref finds this run again.
func (r Run) Ref() Ref { return Ref{r.Tenant, r.ID} }

// Work is what the worker is asked to do.
type Work struct {
	// Kind is the kind of work; "export" is the only one so far.
	Kind   string `json:"kind"`
	Format string `json:"format"`
	PI     string `json:"pi"`
	// Options is the JSON object that the worker gets, as it was accepted.
	Options json.RawMessage `json:"options"`
	Image   string          `json:"image"`
}

// Attempt is the current try. Its zero value stands for a run that was never
// tried.
type Attempt struct {
	// Number counts from 1.
	Number int `json:"number"`
	// MachineName is committed before the machine is made.
	MachineName string `json:"machineName,omitempty"`
	// MachineID is the runner's id, empty until it is known.
	MachineID string `json:"machineId,omitempty"`
	// IntentAt is when the machine was first wanted.
	IntentAt time.Time `json:"intentAt,omitzero"`
	// StartBy is when a machine that was not seen running is given up.
	StartBy time.Time `json:"startBy,omitzero"`
	// BackoffUntil is when the next try to make the machine is due, after the
	// platform refused one for now.
	BackoffUntil time.Time `json:"backoffUntil,omitzero"`
	// Throttles counts the times in a row the platform asked to come later.
	Throttles int `json:"throttles,omitempty"`
	// StartedAt is the first entry into Running; the time limit counts from it.
	StartedAt time.Time `json:"startedAt,omitzero"`
	// Silent: the worker has never been heard, and its first heartbeat limit is
	// over. Such a worker may know only the export contract; it has no
	// heartbeat limit.
	HeartbeatExempt bool `json:"heartbeatExempt,omitempty"`
	// WorkerID is the worker that is heard: the first of the attempt that
	// called. Empty until one has.
	WorkerID string `json:"workerId,omitempty"`
	// HandlesSigterm: that worker said that it ends gracefully on SIGTERM.
	HandlesSigterm bool `json:"handlesSigterm,omitempty"`
	// QuietFrom is from when the worker's silence counts, as of the last time
	// that anybody looked: its last call, or since when calls can be received.
	// Zero before it was heard.
	LastContactAt time.Time `json:"lastContactAt,omitzero"`
	// ToldAt is when an answer told the worker of the cancel, TermAt when it was
	// sent SIGTERM, and GraceUntil when it is given up: the grace after the
	// first of the two. Zero until then.
	CancelDeliveredAt time.Time `json:"cancelDeliveredAt,omitzero"`
	SigtermAt         time.Time `json:"sigtermAt,omitzero"`
	GraceUntil        time.Time `json:"graceUntil,omitzero"`
	EndedAt           time.Time `json:"endedAt,omitzero"`
	// Outcome is how the attempt ended; empty while it goes on.
	Outcome Outcome `json:"outcome,omitempty"`
	// Report is what the worker told at its end; nil where it told nothing.
	Report *Report `json:"report,omitempty"`
	// Exit is how the program ended, where the runner could tell.
	Exit *Exit `json:"exit,omitempty"`
}

// Outcome is how an attempt ended, in the words of the worker contract.
type Outcome string

// The three outcomes.
const (
	OutcomeSucceeded Outcome = "SUCCEEDED"
	OutcomeFailed    Outcome = "FAILED"
	OutcomeCancelled Outcome = "CANCELLED"
)

// Exit is how a machine's program ended.
type Exit struct {
	Code   int  `json:"code"`
	Signal int  `json:"signal,omitempty"`
	OOM    bool `json:"oom,omitempty"`
	// Requested: somebody asked the platform to stop the machine.
	Requested bool `json:"requested,omitempty"`
}

// Report is a worker's last word about its attempt.
type Report struct {
	// Digest tells a repetition from a contradiction.
	Digest  string  `json:"digest"`
	Success bool    `json:"success"`
	Upload  *Upload `json:"upload,omitempty"`
	// Metrics are the worker's own, as it told them; nil or a JSON object.
	Metrics json.RawMessage `json:"metrics,omitempty"`
	// Error is the worker's text about its failure.
	Error string `json:"error,omitempty"`

	// What follows is told in the worker contract's words alone.

	// Outcome is what the worker says it came to; empty leaves that to Success.
	Outcome Outcome `json:"outcome,omitempty"`
	// Output is the worker's own JSON object about what it leaves.
	Output json.RawMessage `json:"output,omitempty"`
	// Category, StackTrace and Retryable are of a failure; a Retryable of nil is
	// what its category says.
	Category   fault.Category `json:"category,omitempty"`
	StackTrace string         `json:"stackTrace,omitempty"`
	Retryable  *bool          `json:"retryable,omitempty"`
	// Phase and Partial say how far a worker came that was cancelled.
	Phase   string          `json:"phase,omitempty"`
	Partial json.RawMessage `json:"partial,omitempty"`
}

// fault is the one of a worker that reports an error. The older words have no
// category, and their error is final.
func (r Report) fault(policy Retry) *fault.Fault {
	f := fault.New(fault.WorkerError, "%s", r.Error)
	if r.Category == "" {
		return f
	}
	f.Category = r.Category
	f.Retryable = r.Category.Retryable() || len(policy.Categories) > 0
	if r.Retryable != nil {
		f.Retryable = *r.Retryable
	}
	f.Retryable = f.Retryable && policy.allows(r.Category)
	return f
}

// Upload is the output as the worker told it.
type Upload struct {
	Key      string `json:"key"`
	FileName string `json:"fileName"`
	Size     int64  `json:"size"`
}

// Output is the output as it is kept.
type Output struct {
	Upload
	ETag        string    `json:"etag"`
	ContentType string    `json:"contentType"`
	AcceptedAt  time.Time `json:"acceptedAt"`
	// ExpiresAt is when it is no longer served.
	ExpiresAt time.Time `json:"expiresAt"`
	// DeletedAt is when its bytes were removed.
	DeletedAt time.Time `json:"deletedAt,omitzero"`
}

// Spent counts what the retry budgets have paid for.
type Spent struct {
	// Attempts counts the failed attempts whose machine had started.
	Attempts int `json:"attempts"`
	// Starts counts the machines that never started.
	Starts int `json:"starts"`
	// Judgements counts the times in a row that a state was judged without any
	// progress; unforeseen failures of the same state are given up on it.
	Evaluations int `json:"evaluations,omitempty"`
}

// Slot is the run's place in its pool.
type Slot struct {
	Pool string `json:"pool"`
	// Limit is the pool's limit when the slot was asked for, or granted; 0 is no
	// limit, and then there is no lease.
	Limit int       `json:"limit"`
	State SlotState `json:"state,omitempty"`
	// Since orders the queue: the run's arrival for its first attempt, the
	// moment of asking for a later one.
	Since time.Time `json:"since,omitzero"`
}

// Stand says how a run stands to its pool.
type SlotState string

// How a run can stand to its pool. The zero value is a run that holds nothing.
const (
	SlotQueued SlotState = "queued"
	SlotHeld   SlotState = "held"
)

// Wait is the token state that the execution is in, or is being sent to.
type Wait struct {
	// Generation counts the entries into token states, from 1; the newest wins.
	Generation int `json:"generation"`
	// Step is the state-machine state that the token belongs to.
	Step Step `json:"step,omitempty"`
	// Token is empty until it is stored, and once it was completed.
	Token string `json:"token,omitempty"`
}

// Execution is the run's side of its Step Functions execution.
type Execution struct {
	// Start counts the executions, from 1. It is committed before one is begun.
	Start int `json:"start"`
	// ActBy is when the execution must have acted on the record; the sweep asks
	// about it after that. Zero where nothing is awaited.
	ActBy time.Time `json:"actBy,omitzero"`
	// Pending are the effects of the last commits that no later commit has shown
	// to be done.
	Pending []Effect `json:"pending,omitempty"`
}

// Wish is a cancel that somebody asked for.
type CancelRequest struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
}
