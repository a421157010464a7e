package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
)

const drainReason = " drains, with the deadline "

// IsDrainReason reports whether a cancel has the reason of Drained.
func IsDrainReason(reason string) bool {
	return strings.HasPrefix(reason, "the pool ") && strings.Contains(reason, drainReason)
}

// Drained: the deadline of the draining pool is over. The worker of a run that holds a slot
// of it is asked to end: by the answer to its next call, by SIGTERM, and by SIGKILL after its
// grace. A success that it reports meanwhile counts. Otherwise the attempt uses up nothing,
// and the next one waits in the queue of the run's own pool. A run that has a slot and no
// attempt yet is asked when its attempt has begun. A run of kind inference is cancelled,
// because its answer is of no use later.
type Drained struct{ Pool Pool }

func (f Drained) apply(d *draft) error {
	if !f.Pool.Holds(d.Run) || d.Cancel != nil || d.Attempt.Eviction != nil {
		return nil
	}
	reason := fmt.Sprintf("the pool %s"+drainReason+"%s", f.Pool.ID, f.Pool.DrainBy.Format(time.RFC3339))
	if d.Work.Inference != nil {
		if d.State == Terminating {
			return nil
		}
		return CancelRequested{By: f.Pool.UpdatedBy, Reason: reason}.apply(d)
	}
	if d.State != ContainerCreating && d.State != Running {
		return nil
	}
	d.Attempt.Eviction, d.changed = &CancelRequest{At: d.now, By: f.Pool.UpdatedBy, Reason: reason}, true
	if d.State == ContainerCreating {
		d.endEvicted(OutcomeFailed, "the attempt ends before its start")
		return nil
	}
	if d.Attempt.WorkerID != "" {
		d.heartbeat.Cancel = &reason
	}
	d.await(StepCancelling)
	return nil
}

// EndRequest is the request that the worker ends: the cancel request of the run, or else the
// eviction of the attempt; nil without one.
func (r Run) EndRequest() *CancelRequest {
	if r.Cancel != nil {
		return r.Cancel
	}
	return r.Attempt.Eviction
}

// Evicted reports whether the attempt is to end, or has ended, because its pool drains.
func (r Run) Evicted() bool { return r.Cancel == nil && r.Attempt.Eviction != nil }

// endRequestedAt is when the worker was first asked to end.
func (r Run) endRequestedAt() time.Time {
	if r.Attempt.Eviction != nil {
		return r.Attempt.Eviction.At
	}
	return r.Cancel.At
}

// endEvicted ends the attempt of a run whose pool drains.
func (d *draft) endEvicted(outcome Outcome, message string) {
	why := fault.New(fault.PoolDrained, "%s; the attempt does not count", d.Attempt.Eviction.Reason)
	d.endAttempt(outcome, message, why)
}

// evictedBy reports whether the exit of a program can be the result of the eviction. A
// program that ended by itself before SIGTERM has its usual end.
func (d *draft) evictedBy(exit *Exit) bool {
	return d.Evicted() && (!d.Attempt.SigtermAt.IsZero() || exit == nil || exit.Requested || exit.Signal != 0)
}

// DrainPhase is how far the drain of a pool is.
type DrainPhase string

// The phases, in their order.
const (
	// DrainWaiting: no run is granted a slot, and runs that have one keep it.
	DrainWaiting DrainPhase = "waiting"
	// DrainEnding: the deadline is over, and workers are asked to end.
	DrainEnding DrainPhase = "ending"
	// DrainStopping: all attempts have ended, and machines are being stopped.
	DrainStopping DrainPhase = "stopping"
	// DrainDone: nothing remains.
	DrainDone DrainPhase = "drained"
)

// DrainPhase returns the phase of the drain of the pool. remaining are its runs with a slot,
// warm is the number of its warm machines. It is empty if the pool does not drain.
func (p Pool) DrainPhase(remaining []Run, warm int, now time.Time) DrainPhase {
	if !p.Draining {
		return ""
	}
	phase := DrainDone
	if len(remaining)+warm > 0 {
		phase = DrainStopping
	}
	for _, r := range remaining {
		if r.State != Terminating {
			phase = DrainWaiting
		}
	}
	if phase == DrainWaiting && !p.DrainBy.IsZero() && !now.Before(p.DrainBy) {
		phase = DrainEnding
	}
	return phase
}
