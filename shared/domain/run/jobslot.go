package run

import (
	"cmp"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// The slots of a job are those of the pool JobPool. Their number is the maxConcurrentRuns of
// the job's newest definition, so a change applies at once to the runs that wait. A run that
// requires the success of the previous one takes the only slot, since no other run may run at
// the same time.

// JobLimit returns the number of slots of the job of which the run takes one; 0 means that the
// run needs no slot. slots is the maxConcurrentRuns of the job's newest definition, 0 for no
// limit. A run whose own definition has no limit needs no slot.
func (r Run) JobLimit(slots int) int {
	switch c := r.Constraints; {
	case c == nil || r.JobID == "":
		return 0
	case c.RequirePreviousSuccess && !r.passesOver():
		return 1
	case c.MaxConcurrentRuns == 0:
		return 0
	}
	return slots
}

// passesOver reports whether the action of the run lets it start although a constraint is violated.
// It still needs a slot of its job.
func (r Run) passesOver() bool { return r.Acting != nil && r.Acting.Type.PassesOver() }

// awaitsSlot reports whether the end of another run can resolve a violation. The run then waits
// in the queue of its job. Otherwise it checks its constraints repeatedly.
func (r Run) awaitsSlot() bool {
	return slices.ContainsFunc(r.Violations, func(v spec.ConstraintViolation) bool { return v.Constraint == spec.MaxConcurrentRuns || v.Awaits })
}

// AwaitsJobSlot reports whether the run is in its job's queue.
func (r Run) AwaitsJobSlot() bool {
	return r.JobSlot.State == platform.SlotQueued && r.State == ActionRunning
}

// awaitJobSlot enqueues the run for a slot of its job.
func (d *draft) awaitJobSlot() { d.JobSlot = d.QueuedJobSlot() }

// QueuedJobSlot returns the place of the run in the queue of its job, ordered by its scheduled
// or creation time. The run must have constraints.
func (r Run) QueuedJobSlot() platform.Slot {
	return platform.Slot{Pool: platform.JobPool(r.JobID), Limit: r.Constraints.MaxConcurrentRuns, State: platform.SlotQueued, Since: r.queueTime()}
}

// queueTime returns the later of the scheduled time and the creation time of the run. It orders
// the runs of a job.
func (r Run) queueTime() time.Time { return later(r.ScheduledAt, r.CreatedAt) }

// Older reports whether the run is older than another run of its job, in the order of the job's
// queue.
func (r Run) Older(other Run) bool {
	return cmp.Or(r.queueTime().Compare(other.queueTime()), cmp.Compare(r.ID, other.ID)) < 0
}

// JobGranted: the run is the first in the queue of its job, and the commit takes a free slot of
// the job. The constraints are evaluated again before the run starts, unless it needs only the
// slot.
type JobGranted struct {
	// Limit is the current JobLimit; 0 means that the run no longer needs a slot.
	Limit int
}

func (f JobGranted) apply(d *draft) error {
	if !d.AwaitsJobSlot() {
		return nil
	}
	d.JobSlot.State, d.JobSlot.Limit, d.JobSlot.Since = platform.SlotHeld, f.Limit, d.now
	if d.passesOver() || d.Constraints.CountBefore() == 1 && d.Constraints.MaxConcurrentRuns > 0 {
		d.startAfterAction() // it needs only the slot
		return nil
	}
	d.checkAgain()
	return nil
}

// JobLimited: the job of a run that began without a limit has one now. The run takes a slot of
// it and continues. A child needs none.
type JobLimited struct{}

func (JobLimited) apply(d *draft) error {
	if d.JobID != "" && !d.HasParent() && d.Attempt.Number > 0 && !d.State.Terminal() && d.JobSlot.Counted() == "" {
		d.JobSlot = platform.Slot{Pool: platform.JobPool(d.JobID), Limit: limit.ConcurrentRuns, State: platform.SlotHeld, Since: d.now}
		d.changed = true
	}
	return nil
}

// Replaces returns the older runs of its job that a run with kill_old replaces. contenders are the
// runs that hold a slot of the job or are queued for one. The newest runs keep the slots, and only
// as many of the oldest as necessary are replaced. If newer runs with kill_old need all slots,
// replaced is empty and by is the newest of them, which replaces the run itself.
func (r Run) Replaces(contenders []Run, slots int) (replaced []Run, by string) {
	var older []Run
	var newest Run
	newer, replacing := 0, 0
	for _, other := range contenders {
		switch {
		case other.ID == r.ID || other.State.Terminal() || other.Cancel != nil:
		case other.Older(r):
			older = append(older, other)
		default:
			newer++
			if other.replaces() {
				if replacing++; newest.Older(other) {
					newest = other
				}
			}
		}
	}
	switch {
	case slots == 0:
		return nil, ""
	case replacing >= slots:
		return nil, newest.ID
	}
	slices.SortFunc(older, func(a, b Run) int { // newest first
		if a.Older(b) {
			return 1
		}
		return -1
	})
	return older[min(max(slots-1-newer, 0), len(older)):], ""
}

// replaces reports whether the run replaces older ones (kill_old) if its job has no free slot.
func (r Run) replaces() bool {
	if r.Actions == nil {
		return false
	}
	if own, ok := r.Actions.Each[spec.MaxConcurrentRuns]; ok {
		return own.Type == spec.ActionKillOld
	}
	return r.Actions.OnViolation != nil && r.Actions.OnViolation.Type == spec.ActionKillOld
}

// replacedBy returns the subject of a request to cancel a run of the job that a newer run
// replaces.
func replacedBy(jobID string) string { return "job:" + jobID }

// Replacement returns the cancel request for a run that the newer run of its job replaces.
func (r Run) Replacement(newer string) CancelRequested {
	return CancelRequested{By: replacedBy(r.JobID), Reason: "a newer run of the job replaces it: " + newer}
}

// IgnoredAsPrevious reports whether requirePreviousSuccess ignores the run: it was skipped, or
// replaced by a newer run of its job.
func (r Run) IgnoredAsPrevious() bool {
	return r.Skipped || r.HasParent() || r.State == Cancelled && r.Cancel != nil && r.JobID != "" && r.Cancel.By == replacedBy(r.JobID)
}
