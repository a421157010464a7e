package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

const drainReason = " drains, with the deadline "

// IsDrainReason reports whether a cancel reason is one that Drained sets.
func IsDrainReason(reason string) bool {
	return strings.HasPrefix(reason, "the pool ") && strings.Contains(reason, drainReason)
}

// Drained: the deadline of the draining pool has passed. The worker of a run that holds a slot
// of the pool is asked to end: by the response to its next call, by SIGTERM, and by SIGKILL
// after its grace period. A success that it still reports counts. Otherwise the attempt uses up
// nothing, and the next one queues in the run's own pool. A run with a slot but without an
// attempt is asked once its attempt has begun. An inference run is cancelled, because its answer
// is of no use later.
type Drained struct{ Pool platform.Pool }

func (f Drained) apply(d *draft) error {
	if !d.HoldsSlotOf(f.Pool) || d.FansOut() || d.Cancel != nil || d.Attempt.Eviction != nil {
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
	d.enterTokenState(StepCancelling)
	return nil
}

// EndRequest returns the request to end the worker: the cancel request of the run, or else the
// eviction of the attempt; nil without one.
func (r Run) EndRequest() *CancelRequest {
	if r.Cancel != nil {
		return r.Cancel
	}
	return r.Attempt.Eviction
}

// Evicted reports whether the attempt must end, or has ended, because its pool drains. It is
// false if the run has a cancel request.
func (r Run) Evicted() bool { return r.Cancel == nil && r.Attempt.Eviction != nil }

// endRequestedAt returns when the worker was first asked to end.
func (r Run) endRequestedAt() time.Time {
	if r.Attempt.Eviction != nil {
		return r.Attempt.Eviction.At
	}
	return r.Cancel.At
}

// endEvicted ends the attempt with PoolDrained.
func (d *draft) endEvicted(outcome Outcome, message string) {
	why := fault.New(fault.PoolDrained, "%s; the attempt does not count", d.Attempt.Eviction.Reason)
	d.endAttempt(outcome, message, why)
}

// evictedBy reports whether the exit can be the result of the eviction. A program that ended by
// itself before SIGTERM was not evicted.
func (d *draft) evictedBy(exit *Exit) bool {
	return d.Evicted() && (!d.Attempt.SigtermAt.IsZero() || exit == nil || exit.Requested || exit.Signal != 0)
}
