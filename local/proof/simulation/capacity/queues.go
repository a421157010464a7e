package capacity

import (
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// turnKey returns the key that shares a pool's queue fairly: the concurrency key of a run, or
// else its job.
func turnKey(r *run.Run) string {
	switch {
	case r.Concurrency != nil:
		return "key/" + r.Concurrency.Key
	case r.JobID != "":
		return "job/" + r.JobID
	}
	return ""
}

// urgency returns the rank of a run's priority; 0 is the most urgent.
func urgency(r *run.Run) int {
	switch r.Priority {
	case spec.PriorityInteractive:
		return 0
	case spec.PriorityBatch:
		return 2
	}
	return 1
}

// turn is a key of a pool's queue at a priority.
type turn struct {
	pool, key string
	urgency   int
}

func turnOf(r *run.Run) turn { return turn{r.Slot.Pool, turnKey(r), urgency(r)} }

// CheckKey checks the slot of a run with a concurrency key. The run takes it within the limit
// and in the order of the queue, joins the queue within its limit, and is skipped only by the
// overflow rule.
func (w *Capacity) CheckKey(before, r *run.Run) {
	c := r.Concurrency
	if c == nil {
		return
	}
	now := platform.SlotState("")
	if before != nil {
		now = before.KeySlot.State
	}
	held, queued := 0, 0
	for _, other := range w.Records.Ordered {
		switch {
		case other.Concurrency == nil || other.Concurrency.Key != c.Key || other.State.Terminal():
		case other.KeySlot.State == platform.SlotHeld && w.tookKeyAfter(other, r.KeySlot.Limit):
		case other.KeySlot.State == platform.SlotHeld:
			held++
		case other.KeySlot.State == platform.SlotQueued && w.joinedKeyAfter(other, c.QueueLimit):
		case other.KeySlot.State == platform.SlotQueued:
			queued++
		}
	}
	if !r.State.Terminal() && r.KeySlot.State == platform.SlotHeld && now != platform.SlotHeld {
		if most := min(r.KeySlot.Limit, w.jobs.KeyLimitOf(r)); held > most {
			w.Fail("%s took a slot of key %s with %d others, want at most %d in all", r.ID, c.Key, held-1, most)
		}
		w.checkKeyGrant(before, r)
	}
	if r.KeySlot.State == platform.SlotQueued && now == "" && c.QueueLimit > 0 && queued > c.QueueLimit && r.KeySlot.QueueLimit > 0 {
		w.Fail("%s joined the queue of key %s with %d others, want at most %d in all", r.ID, c.Key, queued-1, c.QueueLimit)
	}
	if r.KeySlot.State == platform.SlotQueued && now == "" && c.QueueLimit > 0 && r.KeySlot.QueueLimit == 0 {
		w.checkReplaces(r)
	}
	if r.Overflowed != nil && (before == nil || before.Overflowed == nil) {
		w.checkOverflow(before, r)
	}
}

// tookKeyAfter reports whether a run may have taken its slot of the key after a run whose job
// has the limit. That is possible if it took it since the last check and its own job has a
// larger limit.
func (w *Capacity) tookKeyAfter(r *run.Run, limit int) bool {
	was := w.Last[r.ID]
	return (was == nil || was.KeySlot.State != platform.SlotHeld) && r.KeySlot.Limit > limit
}

// joinedKeyAfter reports whether a run may have joined the key's queue after a run whose job
// has the limit. That is possible if it joined since the last check and its own job has a
// larger limit or no limit.
func (w *Capacity) joinedKeyAfter(r *run.Run, limit int) bool {
	was, own := w.Last[r.ID], r.Concurrency.QueueLimit
	return (was == nil || was.KeySlot.State != platform.SlotQueued) && (own > limit || own == 0)
}

// checkKeyGrant checks that a run does not take a slot of its key before a queued run that is
// more urgent, or older at the same priority.
func (w *Capacity) checkKeyGrant(before, r *run.Run) {
	place := w.Time.Now
	switch {
	case before == nil:
	case before.KeySlot.State == platform.SlotQueued:
		place = before.KeySlot.Since
	case before.State == run.Pending:
		place = before.EnteredAt
	}
	for _, other := range w.Records.Ordered {
		was := w.Last[other.ID]
		if other.ID == r.ID || other.KeySlot.Pool != r.KeySlot.Pool || other.KeySlot.State != platform.SlotQueued || was == nil || was.KeySlot.State != platform.SlotQueued {
			continue
		}
		if w.Plan.SlowCommits+w.Plan.ServiceFaults > 0 && w.Time.Now.Sub(w.FactsOf(other).KeyQueuedAt) < 2*harness.Slowest {
			continue
		}
		theirs, mine := urgency(other), urgency(r)
		older := other.KeySlot.Since.Before(place.Add(-2 * w.Plan.Skew))
		if theirs < mine || theirs == mine && older {
			w.Fail("%s got a slot of key %s before %s, which is queued since %s", r.ID, r.Concurrency.Key, other.ID, other.KeySlot.Since.Sub(harness.Start))
		}
	}
}

// checkOverflow checks that a skipped run names another run of its key: one that joined the
// queue and replaced it (keep_newest), or one that was queued before it.
func (w *Capacity) checkOverflow(before, r *run.Run) {
	o, c := r.Overflowed, r.Concurrency
	by := w.Records.ByID[o.By]
	joins := before == nil || before.KeySlot.State != platform.SlotQueued
	switch {
	case !r.Skipped || o.Key != c.Key:
		w.Fail("%s was skipped for key %s in %s, want Completed, skipped for %s", r.ID, o.Key, r.State, c.Key)
	case o.By == "" && o.Rule != spec.OverflowKeepNewest: // the queue was empty when it was read
	case by == nil || by.Concurrency == nil || by.Concurrency.Key != c.Key || by.ID == r.ID:
		w.Fail("%s was skipped for %q, want another run of key %s", r.ID, o.By, c.Key)
	case o.Rule == spec.OverflowKeepNewest && w.Last[by.ID] != nil && w.Last[by.ID].KeySlot.State == platform.SlotQueued:
		w.Fail("%s was replaced by %s, which was queued before", r.ID, by.ID)
	case o.Rule == spec.OverflowKeepNewest && by.Concurrency.Overflow != spec.OverflowKeepNewest:
		w.Fail("%s was replaced by %s, whose rule is %q", r.ID, by.ID, by.Concurrency.Overflow)
	case o.Rule != spec.OverflowKeepNewest && (!joins || c.Overflow != o.Rule && c.Overflow != ""):
		w.Fail("%s was skipped by the rule %s in the queue of key %s, want %s for one that joins", r.ID, o.Rule, c.Key, c.Overflow)
	}
	if o.Rule == spec.OverflowKeepNewest && !joins {
		w.checkFirst(before, r)
	}
	if c.QueueLimit == 0 && o.Rule != spec.OverflowKeepNewest || o.Queued < 1 {
		w.Fail("%s was skipped with %d runs in the queue of key %s, whose limit is %d", r.ID, o.Queued, c.Key, c.QueueLimit)
	}
}

// checkReplaces checks that a run that joined a full queue of its key replaced another run.
func (w *Capacity) checkReplaces(r *run.Run) {
	for _, other := range w.Records.Ordered {
		if other.Overflowed != nil && other.Overflowed.By == r.ID {
			return
		}
	}
	w.Fail("%s joined the full queue of key %s and replaced no run", r.ID, r.Concurrency.Key)
}

// checkFirst checks that a replaced run was the first in the queue of its key.
func (w *Capacity) checkFirst(before, r *run.Run) {
	for _, other := range w.Records.Ordered {
		was := w.Last[other.ID]
		if other.KeySlot.Pool != before.KeySlot.Pool || other.KeySlot.State != platform.SlotQueued || was == nil || was.KeySlot.State != platform.SlotQueued {
			continue
		}
		older := urgency(other) == urgency(r) && other.KeySlot.Since.Before(before.KeySlot.Since.Add(-2*w.Plan.Skew))
		if (older || urgency(other) < urgency(r)) && !w.FactsOf(other).KeyQueuedAt.Add(w.grantSlack()).After(w.Time.Now) {
			w.Fail("%s was replaced before %s, which comes first in the queue of key %s", r.ID, other.ID, r.Concurrency.Key)
		}
	}
}

// waitsLong reports whether a run is queued, was queued at the last check, and has been queued
// so long that every later grant was decided with it in the queue.
func (w *Capacity) waitsLong(r *run.Run, at time.Time) bool {
	was := w.Last[r.ID]
	if r.Slot.State != platform.SlotQueued || was == nil || was.Slot.State != platform.SlotQueued || r.Attempt.Number != was.Attempt.Number || Rejoined(was, r) {
		return false
	}
	if r.Attempt.Throttles != was.Attempt.Throttles {
		return false // it had a slot and returned it after a throttled start
	}
	return !w.FactsOf(r).QueuedAt.Add(w.grantSlack()).After(at)
}

// grantSlack is how long after its decision a grant may still be committed.
func (w *Capacity) grantSlack() time.Duration {
	if w.Plan.SlowCommits+w.Plan.ServiceFaults > 0 {
		return 2 * harness.Slowest
	}
	return 0
}
