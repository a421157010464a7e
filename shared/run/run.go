package run

import (
	"encoding/json"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
)

// Ref identifies a run by its tenant and its id.
type Ref struct {
	Tenant string `json:"tenant"`
	ID     string `json:"runId"`
}

// Run is the record of one run. Records are never changed in place, so copies
// may share slices and pointers.
type Run struct {
	Tenant string `json:"tenant"`
	// ID is the run_id; for an ad-hoc run it is the TaskID.
	ID string `json:"runId"`
	// TaskID is the public handle, stable over attempts.
	TaskID        string `json:"taskId"`
	Workspace     string `json:"workspace"`
	BatchID       string `json:"batchId,omitempty"`
	CorrelationID string `json:"correlationId"`
	// RetryOf is the task of which this run is a requested retry; empty
	// otherwise.
	RetryOf string `json:"retryOf,omitempty"`
	Work    Work   `json:"work"`
	Policy  Policy `json:"policy"`

	// JobID is the stored job that the run is of, at JobVersion; empty for another run.
	JobID      string  `json:"jobId,omitempty"`
	JobVersion int64   `json:"jobVersion,omitempty"`
	Trigger    Trigger `json:"trigger,omitempty"`
	// Parameters are environment variables of this run, which replace those of the
	// job.
	Parameters map[string]string `json:"parameters,omitempty"`
	// FiredAt is when the schedule's firing was committed; zero for another trigger.
	FiredAt time.Time `json:"firedAt,omitzero"`
	// Lineage are the jobs whose runs led to this one by trigger_job, the oldest
	// first; ParentRun is the run that triggered it.
	Lineage     []string     `json:"lineage,omitempty"`
	ParentRun   string       `json:"parentRun,omitempty"`
	Constraints *Constraints `json:"constraints,omitempty"`
	Actions     *Actions     `json:"actions,omitempty"`
	// Violations are the violated constraints, in the order in which they were found.
	Violations []ConstraintViolation `json:"violations,omitempty"`
	// Acting is the action on the violated constraints; nil without one.
	Acting *Acting `json:"acting,omitempty"`
	// Skipped: the run is Completed without an attempt, by a skip.
	Skipped bool `json:"skipped,omitempty"`
	// Missed are the firings that the run is the record of; nil for another run.
	Missed *Missed `json:"missed,omitempty"`

	State State `json:"state"`
	// Version counts the commits of the record, from 1. A commit is conditional
	// on it.
	Version int64 `json:"version"`
	// EventCount is the number of the last event.
	EventCount int `json:"eventCount"`

	CreatedAt   time.Time `json:"createdAt"`
	ScheduledAt time.Time `json:"scheduledAt,omitzero"`
	// EnteredAt is when the run entered its state.
	EnteredAt time.Time `json:"enteredAt"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	// ExpiresAt is when the record is removed; zero until the run ends.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`

	Attempt Attempt `json:"attempt"`
	Spent   Spent   `json:"spent"`
	Tally   Tally   `json:"tally,omitzero"`
	Slot    Slot    `json:"slot"`
	// JobSlot is the run's slot of its job, or its place in the job's queue. The run
	// keeps the slot until it ends.
	JobSlot   Slot           `json:"jobSlot,omitzero"`
	Wait      Wait           `json:"wait"`
	Execution Execution      `json:"execution"`
	Cancel    *CancelRequest `json:"cancel,omitempty"`
	// RetryAt is when the next attempt may start, in Retrying.
	RetryAt time.Time `json:"retryAt,omitzero"`

	// Output is set once the result was verified and accepted.
	Output *Output `json:"output,omitempty"`
	// Logs are the attempts with a stored log, which is removed with the
	// record.
	Logs []int `json:"logs,omitempty"`
	// Deletion delays the deletion of stored bytes after failures.
	Deletion Deletion `json:"deletion,omitzero"`
	// Fault says why the last attempt failed, and at the end why the run did.
	Fault *fault.Fault `json:"fault,omitempty"`
}

// Expired reports whether the record's retention is over.
func (r Run) Expired(now time.Time) bool { return !r.ExpiresAt.IsZero() && !r.ExpiresAt.After(now) }

// PurgeAt is when the record can be deleted: when it expires, but not while bytes of
// it are stored. Zero if that is not known yet.
func (r Run) PurgeAt() time.Time {
	if r.BytesLeft() {
		return time.Time{}
	}
	return r.ExpiresAt
}

// Succeeded reports whether the attempt's worker reported success before any
// cancel request. A later request does not discard the output.
func (r Run) Succeeded() bool { return r.Attempt.Outcome == OutcomeSucceeded }

// PoolState is how the pool counts the run: queued, held, or not at all if it has
// ended or the pool has no limit. JobPoolState is the same for the pool of its job.
func (r Run) PoolState() SlotState { return r.counted(r.Slot) }

// JobPoolState is how the job's pool counts the run; see PoolState.
func (r Run) JobPoolState() SlotState { return r.counted(r.JobSlot) }

func (r Run) counted(s Slot) SlotState {
	if r.State.Terminal() {
		return ""
	}
	return s.counted()
}

// Queued reports whether the run waits in its pool's queue: for a slot, or for the
// next permitted start after a throttled one.
func (r Run) Queued() bool {
	return r.Slot.State == SlotQueued && (r.State == Pending || r.State == ActionRunning || r.State == ContainerCreating)
}

// Placed reports whether the run's machine is known and may run.
func (r Run) Placed() bool {
	return r.Attempt.Machine.Known() && (r.State == ContainerCreating || r.State == Running)
}

// Ref returns the run's tenant and id.
func (r Run) Ref() Ref { return Ref{r.Tenant, r.ID} }

// Work is the task of the worker.
type Work struct {
	// Kind is KindExport or KindJob.
	Kind   string `json:"kind"`
	Format string `json:"format"`
	PI     string `json:"pi"`
	// Options is the JSON object for the worker, as it was accepted.
	Options json.RawMessage `json:"options"`
	Image   string          `json:"image"`
	// Program is the work of kind job; nil for another kind.
	Program *Program `json:"program,omitempty"`
	// Resources are what the work asks of its machine.
	Resources Resources `json:"resources,omitzero"`
}

// Resources describe a machine. Zero values are those of the deployment.
type Resources struct {
	CPUs     int    `json:"cpus,omitempty"`
	MemoryMB int    `json:"memoryMB,omitempty"`
	Region   string `json:"region,omitempty"`
}

// ContentType returns the media type of the work's output.
func (w Work) ContentType() string {
	switch {
	case w.Kind == KindExport:
		return "application/xml" // every export format is XML
	case w.Program != nil && w.Program.Output != nil && w.Program.Output.ContentType != "":
		return w.Program.Output.ContentType
	}
	return "application/octet-stream"
}

// Attempt is the current attempt. Its zero value means that the run has not been tried.
type Attempt struct {
	// Number counts from 1.
	Number int `json:"number"`
	// MachineName is committed before the machine is created.
	MachineName string `json:"machineName,omitempty"`
	// Machine is zero until it is known.
	Machine Machine `json:"machine,omitzero"`
	// IntentAt is when the machine was first requested.
	IntentAt time.Time `json:"intentAt,omitzero"`
	// StartBy is the start limit: a machine that was not observed running by
	// then has failed.
	StartBy time.Time `json:"startBy,omitzero"`
	// BackoffUntil is when the creation of the machine is retried, after the
	// platform refused it temporarily.
	BackoffUntil time.Time `json:"backoffUntil,omitzero"`
	// Throttles counts the creations that were throttled or not answered.
	Throttles int `json:"throttles,omitempty"`
	// Unsure: a create call had no answer, so a machine may exist that the platform
	// does not show.
	Unsure bool `json:"unsure,omitempty"`
	// App is where the machine is to be created, empty if the runner chooses.
	// StartAt is the time at which the start is permitted, zero if it needs no
	// permit; see StartGate.
	App     string    `json:"app,omitempty"`
	StartAt time.Time `json:"startAt,omitzero"`
	// CreateBy is when a create call that may be in flight has ended at the
	// latest. It is zero before the first call and after each answer.
	CreateBy time.Time `json:"createBy,omitzero"`
	// StartedAt is the first entry into Running; the time limit counts from it.
	StartedAt time.Time `json:"startedAt,omitzero"`
	// HeartbeatExempt: the worker has not called within the first heartbeat
	// limit. It may implement only the export contract, so it has no heartbeat
	// limit.
	HeartbeatExempt bool `json:"heartbeatExempt,omitempty"`
	// HeartbeatsSwept: heartbeats are not forwarded to the execution; sweeps find
	// overdue ones.
	HeartbeatsSwept bool `json:"heartbeatsSwept,omitempty"`
	// WorkerID is the first worker of the attempt that called; empty until
	// then.
	WorkerID string `json:"workerId,omitempty"`
	// HandlesSigterm: the worker ends gracefully on SIGTERM.
	HandlesSigterm bool `json:"handlesSigterm,omitempty"`
	// LastContactAt is when the heartbeat limit last started, as of the last
	// evaluation: the worker's last call, or the time since which calls can be
	// received. It is zero before the first call.
	LastContactAt time.Time `json:"lastContactAt,omitzero"`
	// ReachableSince and ReachableAt are the first and the last canary that was
	// received for this attempt while a heartbeat is overdue; zero otherwise.
	ReachableSince time.Time `json:"reachableSince,omitzero"`
	ReachableAt    time.Time `json:"reachableAt,omitzero"`
	// CancelDeliveredAt is when an answer delivered the cancel request,
	// SigtermAt when SIGTERM was sent, and GraceUntil the end of the grace,
	// which starts with the first of the two. They are zero until then.
	CancelDeliveredAt time.Time `json:"cancelDeliveredAt,omitzero"`
	SigtermAt         time.Time `json:"sigtermAt,omitzero"`
	GraceUntil        time.Time `json:"graceUntil,omitzero"`
	EndedAt           time.Time `json:"endedAt,omitzero"`
	// Outcome is how the attempt ended; empty until then.
	Outcome Outcome `json:"outcome,omitempty"`
	// Report is the worker's report; nil without a report.
	Report *Report `json:"report,omitempty"`
	// Exit is how the program ended, if the runner reported it.
	Exit *Exit `json:"exit,omitempty"`
}

// Outcome is how an attempt ended, in the worker contract's spelling.
type Outcome string

// The three outcomes.
const (
	OutcomeSucceeded Outcome = "SUCCEEDED"
	OutcomeFailed    Outcome = "FAILED"
	OutcomeCancelled Outcome = "CANCELLED"
)

// Exit is how a machine's program ended.
type Exit struct {
	// Code is the exit code, 128+n for signal n.
	Code int `json:"code"`
	// Signal is the signal that ended the program; 0 if none did. A program that
	// exits with 137 by itself has Signal 0, a program that SIGKILL ended has 9.
	Signal int `json:"signal,omitempty"`
	// OOM: the kernel killed the program because memory was exhausted.
	OOM bool `json:"oom,omitempty"`
	// Requested: a stop of the machine was requested from the platform.
	Requested bool `json:"requested,omitempty"`
	// Host: the host stopped all its machines because it shut down.
	Host bool `json:"host,omitempty"`
	// At is when the program ended, by the platform's clock; zero if it is
	// unknown.
	At time.Time `json:"at,omitzero"`
}

const sigkill = 9

// killedAfter reports whether the program was killed after a time, and not for
// its memory. A kill that a stop of the machine caused is after every cancel
// request, whatever the platform's clock says.
func (e *Exit) killedAfter(at time.Time) bool {
	return e != nil && e.Signal == sigkill && !e.OOM && (e.Requested || e.At.IsZero() || !e.At.Before(at))
}

// Report is a worker's report of the end of its attempt.
type Report struct {
	// Digest distinguishes a repeated report from a contradicting one.
	Digest  string  `json:"digest"`
	Success bool    `json:"success"`
	Upload  *Upload `json:"upload,omitempty"`
	// Metrics are the worker's metrics: nil or a JSON object.
	Metrics json.RawMessage `json:"metrics,omitempty"`
	// Error is the worker's description of its failure.
	Error string `json:"error,omitempty"`

	// The following fields are set only by the worker contract.

	// Outcome is the outcome that the worker reports; empty means that Success
	// decides.
	Outcome Outcome `json:"outcome,omitempty"`
	// Output is the worker's JSON object about its output.
	Output json.RawMessage `json:"output,omitempty"`
	// Category, StackTrace and Retryable describe a failure. If Retryable is
	// nil, the category decides.
	Category   fault.Category `json:"category,omitempty"`
	StackTrace string         `json:"stackTrace,omitempty"`
	Retryable  *bool          `json:"retryable,omitempty"`
	// Exit is how the program of a job ended; nil if the worker does not report it.
	Exit *Exit `json:"exit,omitempty"`
	// Phase and Partial describe the progress of a cancelled worker.
	Phase   string          `json:"phase,omitempty"`
	Partial json.RawMessage `json:"partial,omitempty"`
}

// fault returns the fault of a report of failure. An export contract's callback
// has no category, and its error is final. So is a failure of the category
// CANCELLED, whatever the worker says.
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
	f.Retryable = f.Retryable && policy.allows(r.Category) && r.Category != fault.CategoryCancel
	return f
}

// Spent is the used part of the retry budgets.
type Spent struct {
	// Attempts counts the failed attempts whose machine had started.
	Attempts int `json:"attempts"`
	// Starts counts the machines that never started.
	Starts int `json:"starts"`
	// Stops counts the machines that were stopped from outside, but not by their
	// host.
	Stops int `json:"stops,omitempty"`
	// Evaluations counts consecutive evaluations of a state without progress.
	// It sets the backoff after unexpected failures.
	Evaluations int `json:"evaluations,omitempty"`
}

// Slot is the run's slot of its pool, or its place in the queue.
type Slot struct {
	Pool string `json:"pool"`
	// Limit is the pool's limit when the slot was requested or granted; 0 means
	// no limit, and then there is no lease.
	Limit int       `json:"limit"`
	State SlotState `json:"state,omitempty"`
	// Since orders the queue: the run's creation for its first attempt, the
	// time of the request for a later one.
	Since time.Time `json:"since,omitzero"`
	// Asked is the Since of the attempt's first place in the queue, or when it got
	// its slot without one. A throttled start returns to that place.
	Asked time.Time `json:"asked,omitzero"`
}

// SlotState is the state of a slot.
type SlotState string

// The states of a slot. The zero value means that the run has no slot.
const (
	SlotQueued SlotState = "queued"
	SlotHeld   SlotState = "held"
)

// Wait is the token state that the execution is in, or is entering.
type Wait struct {
	// Generation counts the entries into token states, from 1; the newest is
	// valid.
	Generation int `json:"generation"`
	// Step is the state-machine state that the token belongs to.
	Step Step `json:"step,omitempty"`
	// Token is empty until it is stored, and after it was completed.
	Token string `json:"token,omitempty"`
}

// Execution is the state of the run's Step Functions execution.
type Execution struct {
	// Start numbers the executions, from 1. It is committed before the
	// execution is started.
	Start int `json:"start"`
	// HandOvers is how many of the starts continued a run whose execution had a
	// nearly full history. The others replaced a lost execution.
	HandOvers int `json:"handOvers,omitempty"`
	// Events is the estimated number of events in the execution's history.
	Events int `json:"events,omitempty"`
	// ActBy is the time by which the execution must have acted on the record;
	// the sweep checks it after that. It is zero if nothing is expected.
	ActBy time.Time `json:"actBy,omitzero"`
	// Pending are the effects of earlier commits that no later commit has shown
	// to be done.
	Pending []Effect `json:"pending,omitempty"`
	// Repairs counts the sweep's consecutive failures to check the execution. It
	// sets the delay of the next check; any other change of the record ends it.
	Repairs int `json:"repairs,omitempty"`
}

// CancelRequest is a request to cancel the run.
type CancelRequest struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
}
