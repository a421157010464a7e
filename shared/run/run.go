package run

import (
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
	// CreatedBy is the client that requested the run; zero for a run that no client
	// requested, and for one that was created before this field was.
	CreatedBy Actor `json:"createdBy,omitzero"`
	// Exec: the run may be of a program of the host, because the one who started it had the
	// scope exec: a client, the one who stored the job of a schedule, or both of those with
	// trigger_job.
	Exec bool `json:"exec,omitempty"`
	// PayloadDigest is "sha256:" and the hexadecimal SHA-256 of what is run, in canonical JSON
	// (RFC 8785): of the accepted request, or of the definition of a stored job with its version
	// and the parameters. A requested retry has that of its run. It is empty for what has no
	// canonical form.
	PayloadDigest string `json:"payloadDigest,omitempty"`
	// TraceParent is the W3C trace context of the request that created the run, in the
	// form of version 00; empty without one.
	TraceParent string `json:"traceParent,omitempty"`
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
	Lineage   []string `json:"lineage,omitempty"`
	ParentRun string   `json:"parentRun,omitempty"`
	// Parent is what is known of ParentRun; nil in an older record. Triggered are the runs
	// that this one has triggered.
	Parent    *Parent  `json:"parent,omitempty"`
	Triggered []JobRun `json:"triggered,omitempty"`
	// Serves is the replica of a pool of an engine that the run is; nil for another run.
	Serves      *Serves      `json:"serves,omitempty"`
	Constraints *Constraints `json:"constraints,omitempty"`
	Actions     *Actions     `json:"actions,omitempty"`
	// Priority orders the run in queues; Concurrency is the limit of the run's key, nil
	// without one.
	Priority    Priority     `json:"priority,omitempty"`
	Concurrency *Concurrency `json:"concurrency,omitempty"`
	// Override replaces the priority and the key of the job for this run.
	Override Override `json:"override,omitzero"`
	// Overflowed is set if the run was skipped because the queue of its key was full.
	Overflowed *Overflowed `json:"overflowed,omitempty"`
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
	// StartedAt is the first entry into Running of all attempts; zero before.
	StartedAt time.Time `json:"startedAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	// ExpiresAt is when the record is removed; zero until the run ends.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`

	Attempt Attempt `json:"attempt"`
	Spent   Spent   `json:"spent"`
	Tally   Tally   `json:"tally,omitzero"`
	Slot    Slot    `json:"slot"`
	// Detour is the way of the run from its own pool to another one; nil in its own pool.
	Detour *Detour `json:"detour,omitempty"`
	// JobSlot is the run's slot of its job, or its place in the job's queue. The run
	// keeps the slot until it ends.
	JobSlot Slot `json:"jobSlot,omitzero"`
	// KeySlot is the run's slot of its key, or its place in the key's queue. The run has
	// it before the slot of its pool, and keeps it until it ends.
	KeySlot Slot `json:"keySlot,omitzero"`
	// Prediction is that of the attempt that was admitted last; nil before the admission.
	Prediction *Prediction `json:"prediction,omitempty"`
	// Expectation is that of the first admission of a run of kind inference, and zero for another kind.
	Expectation Expectation    `json:"expectation,omitzero"`
	Wait        Wait           `json:"wait"`
	Execution   Execution      `json:"execution"`
	Cancel      *CancelRequest `json:"cancel,omitempty"`
	// Reservation is what the attempt may use of budgets; nil for a run without one.
	Reservation *Reservation `json:"reservation,omitempty"`
	// RetryAt is when the next attempt may start, in Retrying.
	RetryAt time.Time `json:"retryAt,omitzero"`

	// Generation is what an engine did for the last attempt of a run of kind inference; nil
	// before, and for another kind.
	Generation *Generation `json:"generation,omitempty"`
	// FailedReplicas are the replicas of the engine at which requests of a run of kind
	// inference have failed. Further attempts try the others first.
	FailedReplicas []string `json:"failedReplicas,omitempty"`
	// Discarded: a client has deleted the answer of a run of kind inference.
	Discarded bool `json:"discarded,omitempty"`
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

// KeyPoolState is how the key's pool counts the run; see PoolState.
func (r Run) KeyPoolState() SlotState { return r.counted(r.KeySlot) }

func (r Run) counted(s Slot) SlotState {
	if r.State.Terminal() {
		return ""
	}
	return s.counted()
}

// Holds returns the slot of a pool that the run holds.
func (r Run) Holds(pool string) (s Slot, holds bool) {
	for _, s := range []Slot{r.Slot, r.JobSlot, r.KeySlot} {
		if s.Pool == pool && s.State == SlotHeld {
			return s, true
		}
	}
	return Slot{}, false
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
	// Priority, Key and Round order the queue before Since; see Order. Key identifies the
	// runs that share turns in the queue; a run without a key has a turn of its own. Round
	// is 0 in a queue without rounds.
	Priority Priority `json:"priority,omitempty"`
	Key      string   `json:"key,omitempty"`
	Round    int64    `json:"round,omitempty"`
	// Behind is the Line.Last from which Round was chosen. A commit that enqueues the run
	// is conditional on it.
	Behind int64 `json:"behind,omitempty"`
	// QueueLimit is the largest number of queued runs; 0 means no limit. A commit that
	// enqueues the run is conditional on it.
	QueueLimit int `json:"queueLimit,omitempty"`
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
	// execution is started. It is 0 for a run that was skipped at its creation, which
	// needs none.
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
