package run

import "time"

// Attempt is the current attempt. Its zero value means that the run has not been tried.
type Attempt struct {
	// Number counts from 1.
	Number int `json:"number"`
	// MachineName is committed before the machine is created.
	MachineName string `json:"machineName,omitempty"`
	// Placement is where the machine is created: that of the pool before the first
	// create call. It is nil for the zero value.
	Placement *Placement `json:"placement,omitempty"`
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
	// ThrottledSince is when a creation was throttled first, ThrottledMessage the last
	// answer of the platform to one. FallbackBy is when the run falls back if no start is
	// permitted before; zero for never.
	ThrottledSince   time.Time `json:"throttledSince,omitzero"`
	ThrottledMessage string    `json:"throttledMessage,omitempty"`
	FallbackBy       time.Time `json:"fallbackBy,omitzero"`
	// Waiting is why the platform does not start the machine yet, in its words; empty if it
	// shows no reason, and once the machine runs.
	Waiting string `json:"waiting,omitempty"`
	// Unsure: a create call had no answer, so a machine may exist that the platform
	// does not show.
	Unsure bool `json:"unsure,omitempty"`
	// App is the place in which the machine is created; empty if the runner chooses.
	// StartAt is the time at which the start is permitted, zero if it needs no permit; see
	// StartGate.
	App     string    `json:"app,omitempty"`
	StartAt time.Time `json:"startAt,omitzero"`
	// Warm is the claim on a warm machine; nil without one. StuckWarm counts the claimed
	// machines that did not start.
	Warm      *WarmClaim `json:"warm,omitempty"`
	StuckWarm int        `json:"stuckWarm,omitempty"`
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
	// Replica is that of the pool whose engine a dispatcher uses for the attempt.
	Replica string `json:"replica,omitempty"`
	// HandlesSigterm: the worker ends gracefully on SIGTERM.
	HandlesSigterm bool `json:"handlesSigterm,omitempty"`
	// SendsOutput: the worker sends its output while it runs. After the end of the
	// attempt it is set until the log is stored.
	SendsOutput bool `json:"sendsOutput,omitempty"`
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
	// Eviction is the request that the worker ends because its pool drains; nil without one.
	// It ends the attempt, not the run.
	Eviction *CancelRequest `json:"eviction,omitempty"`
	EndedAt  time.Time      `json:"endedAt,omitzero"`
	// DestroyAt is when Sortie began to destroy the machine of a worker that has reported
	// and did not exit; zero until then. An exit after it may be no exit of the program.
	DestroyAt time.Time `json:"destroyAt,omitzero"`
	// Outcome is how the attempt ended; empty until then.
	Outcome Outcome `json:"outcome,omitempty"`
	// Report is the worker's report; nil without a report.
	Report *Report `json:"report,omitempty"`
	// Uncleared: the run was orphaned in the attempt, and what its worker uploaded is to be
	// deleted.
	Uncleared bool `json:"uncleared,omitempty"`
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
	// Signal is the signal that ended the program; 0 if none did. A program that exits
	// with 137 by itself has Signal 0; one that was killed by SIGKILL has 9.
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

// killedAfter reports whether the program was killed after a time, and not for its memory.
// A kill by a stop of the machine counts as after every cancel request, even if the
// platform's clock differs.
func (e *Exit) killedAfter(at time.Time) bool {
	return e != nil && e.Signal == sigkill && !e.OOM && (e.Requested || e.At.IsZero() || !e.At.Before(at))
}
