package run

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// Attempt is the current attempt. The zero value means that no attempt has begun.
type Attempt struct {
	// Number counts from 1.
	Number int `json:"number"`
	// MachineName is committed before the machine is created.
	MachineName string `json:"machineName,omitempty"`
	// Placement is where the machine is created: the placement of the pool before the first
	// create call. nil means the zero value.
	Placement *platform.Placement `json:"placement,omitempty"`
	// Machine is zero until the machine is known.
	Machine platform.Machine `json:"machine,omitzero"`
	// IntentAt is when the machine was first requested.
	IntentAt time.Time `json:"intentAt,omitzero"`
	// StartBy is the start limit: the start fails if the machine is not seen running by then.
	StartBy time.Time `json:"startBy,omitzero"`
	// BackoffUntil is when the creation of the machine is retried, after the platform refused
	// it temporarily.
	BackoffUntil time.Time `json:"backoffUntil,omitzero"`
	// Throttles counts the create calls that were throttled or not answered.
	Throttles int `json:"throttles,omitempty"`
	// ThrottledSince is when a create call was first throttled. ThrottledMessage is the message
	// of the last such call. FallbackBy is when the run falls back unless a start is permitted
	// before; zero means never.
	ThrottledSince   time.Time `json:"throttledSince,omitzero"`
	ThrottledMessage string    `json:"throttledMessage,omitempty"`
	FallbackBy       time.Time `json:"fallbackBy,omitzero"`
	// Waiting is the platform's message about why the machine does not start yet; empty without
	// a message, and once the machine runs.
	Waiting string `json:"waiting,omitempty"`
	// MaybeCreated: a create call got no answer, so a machine may exist that the platform does not
	// list.
	MaybeCreated bool `json:"unsure,omitempty"`
	// App is the place in which the machine is created; empty if the runner chooses. StartAt is
	// when the start is permitted; zero if it needs no permit. See StartLimiter.
	App     string    `json:"app,omitempty"`
	StartAt time.Time `json:"startAt,omitzero"`
	// Warm is the claim on a warm machine; nil without one. StuckWarm counts the claimed
	// machines that did not start.
	Warm      *WarmClaim `json:"warm,omitempty"`
	StuckWarm int        `json:"stuckWarm,omitempty"`
	// CreateBy is the time by which a create call in flight has ended. It is zero before the
	// first call and after each answer.
	CreateBy time.Time `json:"createBy,omitzero"`
	// StartedAt is the first entry into Running; the time limit counts from it.
	StartedAt time.Time `json:"startedAt,omitzero"`
	// HeartbeatExempt: the worker has not called within the first heartbeat limit. It may
	// implement only the export contract, so no heartbeat limit applies.
	HeartbeatExempt bool `json:"heartbeatExempt,omitempty"`
	// HeartbeatsSwept: heartbeats are not forwarded to the execution. Sweeps find overdue ones.
	HeartbeatsSwept bool `json:"heartbeatsSwept,omitempty"`
	// WorkerID is the first worker that called in the attempt; empty until then.
	WorkerID string `json:"workerId,omitempty"`
	// Replica is the engine replica that a dispatcher uses for the attempt.
	Replica string `json:"replica,omitempty"`
	// HandlesSigterm: the worker ends gracefully on SIGTERM.
	HandlesSigterm bool `json:"handlesSigterm,omitempty"`
	// SendsOutput: the worker sends its output while it runs. After the attempt it stays set
	// until the log is stored.
	SendsOutput bool `json:"sendsOutput,omitempty"`
	// LastContactAt is when the heartbeat limit last started, as of the last evaluation: the
	// last call of the worker, or the time since which calls can be received. It is zero before
	// the first call.
	LastContactAt time.Time `json:"lastContactAt,omitzero"`
	// ReachableSince and ReachableAt are the times of the first and the last canary that was
	// received while a heartbeat of this attempt is overdue; zero otherwise.
	ReachableSince time.Time `json:"reachableSince,omitzero"`
	ReachableAt    time.Time `json:"reachableAt,omitzero"`
	// CancelDeliveredAt is when a response delivered the cancel request. SigtermAt is when
	// SIGTERM was sent. GraceUntil is the end of the grace period, which starts with the first
	// of the two. They are zero until then.
	CancelDeliveredAt time.Time `json:"cancelDeliveredAt,omitzero"`
	SigtermAt         time.Time `json:"sigtermAt,omitzero"`
	GraceUntil        time.Time `json:"graceUntil,omitzero"`
	// Eviction is the request to end the worker because its pool drains; nil without one. It
	// ends the attempt, not the run.
	Eviction *CancelRequest `json:"eviction,omitempty"`
	EndedAt  time.Time      `json:"endedAt,omitzero"`
	// DestroyAt is when Sortie began to destroy the machine of a worker that reported but did
	// not exit; zero until then. A later exit may not be that of the program.
	DestroyAt time.Time `json:"destroyAt,omitzero"`
	// Outcome is how the attempt ended; empty until then.
	Outcome Outcome `json:"outcome,omitempty"`
	// Report is the worker's report; nil without a report.
	Report *Report `json:"report,omitempty"`
	// UploadsLeft: the run was orphaned during the attempt, and the uploads of its worker must be
	// deleted.
	UploadsLeft bool `json:"uncleared,omitempty"`
	// Exit describes how the program ended; nil if the runner did not report it.
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

// Exit describes how a machine's program ended.
type Exit struct {
	// Code is the exit code, 128+n for signal n.
	Code int `json:"code"`
	// Signal is the signal that ended the program; 0 if it exited. A program that exits with
	// code 137 has Signal 0; a program that SIGKILL ended has 9.
	Signal int `json:"signal,omitempty"`
	// OOM: the kernel killed the program because memory was exhausted.
	OOM bool `json:"oom,omitempty"`
	// Requested: the platform was asked to stop the machine.
	Requested bool `json:"requested,omitempty"`
	// Host: the host shut down and stopped all its machines.
	Host bool `json:"host,omitempty"`
	// At is when the program ended, by the platform's clock; zero if unknown.
	At time.Time `json:"at,omitzero"`
}

const sigkill = 9

// killedAfter reports whether SIGKILL ended the program after the time at, except for exhausted
// memory. A kill by a requested stop always counts, even if the platform's clock differs.
func (e *Exit) killedAfter(at time.Time) bool {
	return e != nil && e.Signal == sigkill && !e.OOM && (e.Requested || e.At.IsZero() || !e.At.Before(at))
}

// Clean reports whether the program ended by itself with code 0.
func (e *Exit) Clean() bool {
	return e != nil && e.Code == 0 && e.Signal == 0 && !e.OOM && !e.Requested
}

// MachineName returns the name of the machine of an attempt.
func MachineName(ref Ref, attempt int) string {
	return platform.ResourceName(ref.Tenant, ref.ID, "a", attempt)
}

// ExecutionName returns the name of the execution with the start number.
func ExecutionName(ref Ref, start int) string {
	return platform.ResourceName(ref.Tenant, ref.ID, "s", start)
}
