package run

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/forecast"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/redelivery"
	"github.com/sortie-dev/sortie/shared/domain/routing"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/domain/spec"
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
	// CreatedBy is the client that requested the run. It is zero for a run without a client,
	// and in records older than this field.
	CreatedBy Actor `json:"createdBy,omitzero"`
	// Exec permits the run to execute a program of the server's host. It is set if the client that
	// started the run, or stored the scheduled job, had the scope exec. A run of trigger_job needs
	// both.
	Exec bool `json:"exec,omitempty"`
	// PayloadDigest is "sha256:" and the hexadecimal SHA-256 of the work in canonical JSON (RFC
	// 8785): the accepted request, or the definition of a stored job with its version and the
	// parameters. A requested retry has the digest of the original run. It is empty if the work
	// has no canonical form.
	PayloadDigest string `json:"payloadDigest,omitempty"`
	// TraceParent is the W3C trace context (version 00) of the request that created the run;
	// empty without one.
	TraceParent string `json:"traceParent,omitempty"`
	// RetryOf is the task id of the run that this run retries on request; empty otherwise.
	RetryOf string      `json:"retryOf,omitempty"`
	Work    spec.Work   `json:"work"`
	Policy  spec.Policy `json:"policy"`

	// JobID and JobVersion identify the stored job of the run; zero for a run without a job.
	JobID      string  `json:"jobId,omitempty"`
	JobVersion int64   `json:"jobVersion,omitempty"`
	Trigger    Trigger `json:"trigger,omitempty"`
	// Parameters are environment variables of this run. They replace variables of the job.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Labels are those of the job at the creation of the run, with the run's own; see package
	// label. Relabelled changes them.
	Labels map[string]string `json:"labels,omitempty"`
	// Inputs are the values of the inputs that the job declares. An input without a value is
	// absent.
	Inputs map[string]spec.Value `json:"inputs,omitempty"`
	// Event is the item that started the run, or the run that it retries; nil for other runs.
	Event *sensor.Event `json:"event,omitempty"`
	// RetriedAt is Scheduled of the run of a job that this one retries, or came after in a graph
	// without a scheduled time; zero for other runs.
	RetriedAt time.Time `json:"retriedAt,omitzero"`
	// FiredAt is when the firing of the schedule was committed; zero for other triggers.
	FiredAt time.Time `json:"firedAt,omitzero"`
	// Lineage lists the jobs whose runs led to this one by trigger_job, oldest first. ParentRun
	// is the run that triggered it.
	Lineage   []string `json:"lineage,omitempty"`
	ParentRun string   `json:"parentRun,omitempty"`
	// Parent describes ParentRun; nil in older records. Triggered are the runs that this run
	// has triggered.
	Parent    *Parent  `json:"parent,omitempty"`
	Triggered []JobRun `json:"triggered,omitempty"`
	// Followers are jobs that come after the run's job. They are considered when the run ends.
	Followers []string `json:"followers,omitempty"`
	// Graph is set for a run that came after runs of other jobs; nil otherwise.
	Graph *Graph `json:"graph,omitempty"`
	// Fan is the progress of the children of a run that fans out; nil before they begin. Child
	// is set for a child.
	Fan   *fan.Progress `json:"fan,omitempty"`
	Child *fan.Child    `json:"child,omitempty"`
	// CancelsRest: a client cancelled what comes after the run.
	CancelsRest bool `json:"cancelsRest,omitempty"`
	// Serves is the engine replica that this run provides; nil for other runs.
	Serves      *Serves           `json:"serves,omitempty"`
	Constraints *spec.Constraints `json:"constraints,omitempty"`
	Actions     *spec.Actions     `json:"actions,omitempty"`
	// Priority orders the run in queues. Concurrency is the limit of its key; nil without a
	// key.
	Priority    spec.Priority     `json:"priority,omitempty"`
	Concurrency *spec.Concurrency `json:"concurrency,omitempty"`
	// Override replaces the priority and the key of the job for this run.
	Override spec.Override `json:"override,omitzero"`
	// Overflowed is set if the run was skipped because the queue of its key was full.
	Overflowed *Overflowed `json:"overflowed,omitempty"`
	// Violations are the violated constraints, in the order in which they were found.
	Violations []spec.ConstraintViolation `json:"violations,omitempty"`
	// Acting is the action on the violated constraints; nil without one.
	Acting *Acting `json:"acting,omitempty"`
	// FailedActions are the newest notifications that have failed, and can be sent again.
	FailedActions []redelivery.Failed `json:"failedActions,omitempty"`
	// Skipped means that the run is Completed without an attempt because it was skipped.
	Skipped bool `json:"skipped,omitempty"`
	// Missed describes the skipped firings that this run is the record of; nil for other runs.
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
	// StartedAt is the first entry into Running of all attempts; zero before.
	StartedAt time.Time `json:"startedAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	// ExpiresAt is when the record expires; zero until the run ends, and while it is held.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	// LogsExpireAt is when the logs expire, if that is before the record.
	LogsExpireAt time.Time `json:"logsExpireAt,omitzero"`
	// Pin keeps the run until it is unpinned; nil for a run that is not pinned.
	Pin *Pin `json:"pin,omitempty"`
	// Held: the run has ended and does not expire, because it is pinned or may be one of the
	// newest runs of its job.
	Held bool `json:"held,omitempty"`

	Attempt Attempt       `json:"attempt"`
	Spent   Spent         `json:"spent"`
	Tally   Tally         `json:"tally,omitzero"`
	Slot    platform.Slot `json:"slot"`
	// Detour records the fallbacks from the run's own pool to other pools; nil without a
	// fallback.
	Detour *Detour `json:"detour,omitempty"`
	// Routes are the pools that can serve an inference run.
	Routes routing.Routes `json:"routes,omitempty"`
	// Shadow is the copy of an inference run for another model; nil without one.
	Shadow *routing.Shadow `json:"shadow,omitempty"`
	// JobSlot is the run's slot of its job, or its place in the job's queue. The run keeps the
	// slot until it ends.
	JobSlot platform.Slot `json:"jobSlot,omitzero"`
	// KeySlot is the run's slot of its key, or its place in the key's queue. The run takes it
	// before the slot of its pool, and keeps it until it ends.
	KeySlot platform.Slot `json:"keySlot,omitzero"`
	// Prediction is the predicted start of the attempt that was admitted last; nil before.
	Prediction *forecast.Prediction `json:"prediction,omitempty"`
	// Expectation is set at the first admission of an inference run; zero for other kinds.
	Expectation forecast.Expectation `json:"expectation,omitzero"`
	Wait        Wait                 `json:"wait"`
	Execution   Execution            `json:"execution"`
	Cancel      *CancelRequest       `json:"cancel,omitempty"`
	// Reservation is the part of the budgets that the attempt may use; nil without budgets.
	Reservation *Reservation `json:"reservation,omitempty"`
	// RetryAt is when the next attempt may start. It is set in Retrying.
	RetryAt time.Time `json:"retryAt,omitzero"`

	// Generation describes what an engine did for the last attempt of an inference run; nil
	// before, and for other kinds.
	Generation *Generation `json:"generation,omitempty"`
	// FailedReplicas are the engine replicas at which requests of an inference run failed.
	// Further attempts try other replicas first.
	FailedReplicas []string `json:"failedReplicas,omitempty"`
	// Discarded means that a client has deleted the answer of an inference run.
	// AnswerDeleted means that the prompt and the stream of an inference run were deleted; see
	// AnswerDue.
	Discarded     bool `json:"discarded,omitempty"`
	AnswerDeleted bool `json:"answerDeleted,omitempty"`
	// Output is set once the output is verified and accepted.
	Output *Output `json:"output,omitempty"`
	// Logs are the numbers of the attempts whose log is stored. Logs are removed with the
	// record.
	Logs []int `json:"logs,omitempty"`
	// Deletion delays the deletion of stored bytes after failures.
	Deletion Deletion `json:"deletion,omitzero"`
	// Fault is the reason of the last failed attempt, and at the end that of the run.
	Fault *fault.Fault `json:"fault,omitempty"`
}

// Expired reports whether the record's retention is over.
func (r Run) Expired(now time.Time) bool { return !r.ExpiresAt.IsZero() && !r.ExpiresAt.After(now) }

// PurgeAt returns when the record can be deleted: at ExpiresAt, if no bytes of the run are
// stored. It is zero while bytes are stored or the run has not ended.
func (r Run) PurgeAt() time.Time {
	if r.BytesLeft() {
		return time.Time{}
	}
	return r.ExpiresAt
}

// Succeeded reports whether the attempt's worker reported success before any
// cancel request. A later request does not discard the output.
func (r Run) Succeeded() bool { return r.Attempt.Outcome == OutcomeSucceeded }

// PoolState returns how the pool counts the run: queued, held, or "" if the run has ended or
// holds no counted slot. Slots of a pool without a limit are not counted.
func (r Run) PoolState() platform.SlotState { return r.countedOf(r.Slot) }

// JobPoolState returns how the job's pool counts the run; see PoolState.
func (r Run) JobPoolState() platform.SlotState { return r.countedOf(r.JobSlot) }

// KeyPoolState returns how the key's pool counts the run; see PoolState.
func (r Run) KeyPoolState() platform.SlotState { return r.countedOf(r.KeySlot) }

func (r Run) countedOf(s platform.Slot) platform.SlotState {
	if r.State.Terminal() {
		return ""
	}
	return s.Counted()
}

// Holds returns the slot that the run holds in the pool, which may be that of its job or key.
func (r Run) Holds(pool string) (s platform.Slot, holds bool) {
	for _, s := range []platform.Slot{r.Slot, r.JobSlot, r.KeySlot} {
		if s.Pool == pool && s.State == platform.SlotHeld {
			return s, true
		}
	}
	return platform.Slot{}, false
}

// Queued reports whether the run waits in its pool's queue: for a slot, or for the
// next permitted start after a throttled one.
func (r Run) Queued() bool {
	return r.Slot.State == platform.SlotQueued && (r.State == Pending || r.State == ActionRunning || r.State == ContainerCreating)
}

// Placed reports whether the run's machine is known and may run.
func (r Run) Placed() bool {
	return r.Attempt.Machine.Known() && (r.State == ContainerCreating || r.State == Running)
}

// Ref returns the run's tenant and id.
func (r Run) Ref() Ref { return Ref{r.Tenant, r.ID} }

// Spent is the used part of the retry budgets.
type Spent struct {
	// Attempts counts the failed attempts whose machine had started.
	Attempts int `json:"attempts"`
	// Starts counts the machines that never started.
	Starts int `json:"starts"`
	// Stops counts the machines that were stopped from outside, except by a shutdown of their
	// host.
	Stops int `json:"stops,omitempty"`
	// Evaluations counts the evaluations of a state that failed in succession. It sets the
	// backoff after unexpected failures.
	Evaluations int `json:"evaluations,omitempty"`
}

// Wait describes the token state that the execution is in, or is entering.
type Wait struct {
	// Generation counts the entries into token states, from 1. Only the newest is valid.
	Generation int `json:"generation"`
	// Step is the state-machine state that the token belongs to.
	Step Step `json:"step,omitempty"`
	// Token is empty until it is stored, and after it was completed.
	Token string `json:"token,omitempty"`
}

// Execution is the state of the run's Step Functions execution.
type Execution struct {
	// Start numbers the executions, from 1. It is committed before the execution is started. It
	// is 0 for a run that was skipped at its creation and has no execution.
	Start int `json:"start"`
	// HandOvers counts the starts that continued a run because the history of its execution was
	// nearly full. The other starts replaced a lost execution.
	HandOvers int `json:"handOvers,omitempty"`
	// Events is the estimated number of events in the execution's history.
	Events int `json:"events,omitempty"`
	// ActBy is the time by which the execution must have acted on the record; zero if nothing
	// is expected. The sweep checks the execution after that time.
	ActBy time.Time `json:"actBy,omitzero"`
	// Pending are the effects of earlier commits that are not yet known to be done.
	Pending []Effect `json:"pending,omitempty"`
	// Repairs counts the consecutive failures of the sweep to check the execution. It sets the
	// delay of the next check. Any other change of the record resets it.
	Repairs int `json:"repairs,omitempty"`
}

// CancelRequest is a request to cancel the run.
type CancelRequest struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
}
