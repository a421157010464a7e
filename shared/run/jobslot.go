package run

import (
	"cmp"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/limit"
)

// The slots of a job are those of the pool JobPool. Their number is the maxConcurrentRuns of
// the job's newest definition: a change of it applies to the runs that wait, at once. A run
// that requires the success of the previous one takes the only slot, since no other one may
// run beside it.

// JobLimit returns of how many slots of its job the run takes one; 0 means that it needs
// none. slots is the maxConcurrentRuns of the job's newest definition, 0 for no limit. A run
// whose own definition has no limit has none.
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

// passesOver reports whether the run starts although a constraint said no. It still needs a
// slot of its job.
func (r Run) passesOver() bool { return r.Acting != nil && r.Acting.Type.passesOver() }

// passesOver reports whether the action informs about a violation and lets the run start.
func (t ActionType) passesOver() bool { return t == ActionWebhook || t == ActionTriggerJob }

// awaitsSlot reports whether the end of another run can meet the violated constraints, so
// that the run waits in its job's queue. Otherwise it checks from time to time.
func (r Run) awaitsSlot() bool {
	return slices.ContainsFunc(r.Violations, func(v ConstraintViolation) bool { return v.Constraint == MaxConcurrentRuns || v.Awaits })
}

// AwaitsJobSlot reports whether the run is in its job's queue.
func (r Run) AwaitsJobSlot() bool { return r.JobSlot.State == SlotQueued && r.State == ActionRunning }

// awaitJobSlot puts the run in its job's queue.
func (d *draft) awaitJobSlot() { d.JobSlot = d.QueuedJobSlot() }

// QueuedJobSlot returns the place of the run in its job's queue, which is that of its
// creation. The run has constraints.
func (r Run) QueuedJobSlot() Slot {
	return Slot{Pool: JobPool(r.JobID), Limit: r.Constraints.MaxConcurrentRuns, State: SlotQueued, Since: r.place()}
}

// place returns the scheduled time of a run, or its creation time if it has none. It
// orders the runs of a job.
func (r Run) place() time.Time { return later(r.ScheduledAt, r.CreatedAt) }

// Older reports whether the run is older than another one of its job, in the order of
// the job's queue.
func (r Run) Older(other Run) bool {
	return cmp.Or(r.place().Compare(other.place()), cmp.Compare(r.ID, other.ID)) < 0
}

// JobGranted: the run is the first in its job's queue, and the commit takes a free
// slot of the job. The constraints are evaluated again before the run starts.
type JobGranted struct {
	// Limit is JobLimit at present; 0 means that the run needs no slot any more.
	Limit int
}

func (f JobGranted) apply(d *draft) error {
	if !d.AwaitsJobSlot() {
		return nil
	}
	d.JobSlot.State, d.JobSlot.Limit, d.JobSlot.Since = SlotHeld, f.Limit, d.now
	if d.passesOver() || d.Constraints.countBefore() == 1 && d.Constraints.MaxConcurrentRuns > 0 {
		d.startAfterAction() // it has the slot, and needs nothing else
		return nil
	}
	d.checkAgain()
	return nil
}

// JobLimited: the job of a run that has begun without a limit has one now. The run counts
// against it, and is not ended.
type JobLimited struct{}

func (JobLimited) apply(d *draft) error {
	if d.JobID != "" && d.Attempt.Number > 0 && !d.State.Terminal() && d.JobSlot.counted() == "" {
		d.JobSlot = Slot{Pool: JobPool(d.JobID), Limit: limit.ConcurrentRuns, State: SlotHeld, Since: d.now}
		d.changed = true
	}
	return nil
}

// Replaces returns the runs of its job that a run with kill_old replaces. contenders are the
// runs that hold a slot of the job or are queued for one. The newest of them keep the slots;
// as many of the oldest are replaced as are needed for that. If newer runs that replace older
// ones take all slots, the run itself is replaced, by one of them.
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
	slices.SortFunc(older, func(a, b Run) int { // the newest first
		if a.Older(b) {
			return 1
		}
		return -1
	})
	return older[min(max(slots-1-newer, 0), len(older)):], ""
}

// replaces reports whether the run replaces older ones if its job has no free slot.
func (r Run) replaces() bool {
	if r.Actions == nil {
		return false
	}
	if own, ok := r.Actions.Each[MaxConcurrentRuns]; ok {
		return own.Type == ActionKillOld
	}
	return r.Actions.OnViolation != nil && r.Actions.OnViolation.Type == ActionKillOld
}

// replacedBy is the subject of a request to end a run of a job that a newer one replaces.
func replacedBy(jobID string) string { return "job:" + jobID }

// Replacement is the fact that ends a run in favor of a newer one of its job.
func (r Run) Replacement(newer string) CancelRequested {
	return CancelRequested{By: replacedBy(r.JobID), Reason: "a newer run of the job replaces it: " + newer}
}

// LookedPast reports whether requirePreviousSuccess looks past the run: it was skipped, or
// replaced by a newer run of its job.
func (r Run) LookedPast() bool {
	return r.Skipped || r.State == Cancelled && r.Cancel != nil && r.JobID != "" && r.Cancel.By == replacedBy(r.JobID)
}
