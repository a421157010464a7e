package simulation

import (
	"cmp"
	"time"

	"github.com/sortie-dev/sortie/shared/run"
)

// holdsJobSlot reports whether a run counts against the limit of its job.
func holdsJobSlot(r *run.Run) bool {
	limited := r.Constraints != nil && r.Constraints.MaxConcurrentRuns > 0
	return limited && !r.State.Terminal() && (r.JobSlot.State == run.SlotHeld || r.Attempt.Number > 0)
}

// tookJobAfter reports whether a run can have taken its slot of the job after another one.
func (w *world) tookJobAfter(r, other *run.Run) bool {
	return !r.JobSlot.Since.Before(other.JobSlot.Since.Add(-2 * w.plan.skew))
}

// queuedForJob reports whether a run that has a slot of its job was in its queue before. It
// can leave it in the commit after that in which it joined it.
func queuedForJob(before, r *run.Run) bool {
	if before.JobSlot.State == run.SlotQueued {
		return true
	}
	if r.Acting == nil || !r.Acting.Done {
		return false
	}
	switch r.Acting.Type {
	case run.ActionKillOld, run.ActionWait, run.ActionRetryLater:
		return true
	}
	return violated(r, run.MaxConcurrentRuns)
}

// replaces reports whether a run with a slot of its job gets it only after an older run,
// which has one, has ended.
func (w *world) replaces(r, other *run.Run) bool {
	return r.Acting != nil && r.Acting.Type == run.ActionKillOld && other.JobID == r.JobID && other.ID != r.ID &&
		holdsJobSlot(other) && older(other, r) && !w.tookJobAfter(other, r)
}

// checkConcurrent checks that a run which begins has a slot of its job.
func (w *world) checkConcurrent(r *run.Run) {
	if !holdsJobSlot(r) {
		return
	}
	held := 0
	for _, other := range w.records.ordered {
		largerLimit := other.Constraints != nil && other.Constraints.MaxConcurrentRuns > r.Constraints.MaxConcurrentRuns // of another version
		if other.JobID == r.JobID && holdsJobSlot(other) && !(largerLimit && w.tookJobAfter(other, r)) {
			held++
		}
	}
	if most := r.Constraints.MaxConcurrentRuns; held > most {
		w.fail("%s began with %d runs of its job, want at most %d", r.ID, held, most)
	}
	for _, other := range w.records.ordered {
		if w.replaces(r, other) {
			w.fail("%s began while the older %s, which it replaces, is %s", r.ID, other.ID, other.State)
		}
	}
}

// placeOf is the place of a run in the queue of its job: the time that it is for, or
// its creation.
func placeOf(r *run.Run) time.Time {
	if r.ScheduledAt.After(r.CreatedAt) {
		return r.ScheduledAt
	}
	return r.CreatedAt
}

// older compares two runs of a job by their places, of which catch-ups share one.
func older(a, b *run.Run) bool {
	return cmp.Or(placeOf(a).Compare(placeOf(b)), a.ScheduledAt.Compare(b.ScheduledAt), cmp.Compare(a.ID, b.ID)) < 0
}

// checkJobGrant checks that a run does not take a slot of its job before a run that
// waits for one longer.
func (w *world) checkJobGrant(before, r *run.Run) {
	queued := queuedForJob(before, r)
	for _, other := range w.records.ordered {
		was := w.last[other.ID]
		if queued && w.replaces(r, other) {
			w.fail("%s got a slot of its job while the older %s, which it replaces, is %s", r.ID, other.ID, other.State)
		}
		if other.ID == r.ID || other.JobID != r.JobID || other.JobSlot.State != run.SlotQueued || was == nil || was.JobSlot.State != run.SlotQueued {
			continue
		}
		if w.plan.slowCommits+w.plan.serviceFaults > 0 && w.time.now.Sub(w.factsOf(other).jobQueuedAt) < 2*slowest {
			continue
		}
		// A run that does not queue takes a slot only if none is queued.
		if !queued || older(other, r) {
			w.fail("%s got a slot of its job before %s, which is queued since %s", r.ID, other.ID, placeOf(other).Sub(start))
		}
	}
}
