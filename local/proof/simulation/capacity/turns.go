package capacity

import (
	"slices"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// turnFacts are the observed turns of a key in the queue of a pool.
type turnFacts struct {
	// at are the times of the last turns, at most three.
	at []time.Time
	// forfeited means that runs of the key have left the queue without a slot, with the places
	// of their rounds, while others are still queued.
	forfeited bool
}

// since reports whether the key had a turn at or after the time.
func (f *turnFacts) since(at time.Time) bool {
	return len(f.at) > 0 && !f.at[len(f.at)-1].Before(at)
}

func (w *Capacity) turnsOf(t turn) *turnFacts {
	if w.turns[t] == nil {
		w.turns[t] = &turnFacts{}
	}
	return w.turns[t]
}

// Rejoined reports whether a queued run has left the queue and joined it again since the
// previous version of its record.
func Rejoined(before, r *run.Run) bool {
	return before.Slot.State == platform.SlotQueued && r.Slot.State == platform.SlotQueued &&
		(before.Slot.Round != r.Slot.Round || !before.Slot.Since.Equal(r.Slot.Since))
}

// NoteTurns records the turns of changed runs. A run whose constraints are not met gets a slot
// and returns it in one event.
func (w *Capacity) NoteTurns(changed []*run.Run) {
	for _, r := range changed {
		before, of := w.Last[r.ID], turnOf(r)
		var turned bool
		switch {
		case before == nil || before.Slot.State != platform.SlotQueued:
			turned = r.Slot.State == platform.SlotHeld && (before == nil || before.Slot.State != platform.SlotHeld)
		case r.Slot.State != platform.SlotQueued:
			of = turnOf(before)
			turned = r.State != run.Cancelled && (r.Fault == nil || r.Fault.Code != fault.QueueTimeout)
			w.turnsOf(of).forfeited = w.turnsOf(of).forfeited || !turned
		default:
			turned = Rejoined(before, r)
		}
		if f := w.turnsOf(of); turned {
			f.at = append(f.at, w.Time.Now)
			f.at = f.at[max(len(f.at)-3, 0):]
		}
	}
	for of, f := range w.turns {
		if f.forfeited && !slices.ContainsFunc(w.Records.Ordered, func(r *run.Run) bool { return r.Slot.State == platform.SlotQueued && turnOf(r) == of }) {
			f.forfeited = false
		}
	}
}

// CheckGrant checks the order in which a run takes a slot of its pool. It must not take one
// before a more urgent run, before a run of its key that joined the queue earlier, or out of
// turn: with the third turn of its key while another key waits. The last turn of a round and
// the first of the next can belong to one key, so two are in order. A run without a key has its
// own turn, after the next turn of each key that was queued when it joined.
func (w *Capacity) CheckGrant(before, r *run.Run) {
	if w.Throttled || w.Mixed() {
		return // a throttled start returns to its earlier place
	}
	mine, joined := turnOf(r), w.Time.Now
	if before.Slot.State == platform.SlotQueued {
		joined = w.FactsOf(r).QueuedAt
	}
	for _, other := range w.Records.Ordered {
		theirs := turnOf(other)
		if other.ID == r.ID || theirs.pool != mine.pool || theirs.urgency > mine.urgency || !w.waitsLong(other, w.Time.Now) {
			continue
		}
		at, keys := w.turnsOf(mine).at, w.turnsOf(theirs)
		switch {
		case theirs.urgency < mine.urgency:
			w.Fail("%s got a slot before the more urgent %s", r.ID, other.ID)
		case theirs == mine && mine.key != "":
			if w.waitedBefore(other, joined) {
				w.Fail("%s of %q got a slot before %s, which joined the queue at %s", r.ID, mine.key, other.ID, w.FactsOf(other).QueuedAt.Sub(harness.Start))
			}
		case theirs == mine:
			if asked := other.Slot.Since; asked.Before(r.Slot.RequestedAt.Add(-2*w.Plan.Skew)) && w.waitedBefore(other, joined) {
				w.Fail("%s got a slot before %s, which is queued since %s", r.ID, other.ID, asked.Sub(harness.Start))
			}
		case keys.forfeited: // it has lost the turns of the runs that left
		case mine.key == "":
			// Within one round both are ordered by age, according to the clocks of two hosts.
			if w.waitedBefore(other, joined.Add(-2*w.Plan.Skew)) && !keys.since(joined) {
				w.Fail("%s got a slot before %s of %q, which has waited for its turn since %s", r.ID, other.ID, theirs.key, w.FactsOf(other).QueuedAt.Sub(harness.Start))
			}
		case len(at) == 3 && w.waitedBefore(other, at[0]) && (theirs.key == "" || !keys.since(at[0])):
			w.Fail("%s got a slot, the third of %q since %s, before %s", r.ID, mine.key, at[0].Sub(harness.Start), other.ID)
		}
	}
}

// waitedBefore reports whether a queued run was already in the queue before the time.
func (w *Capacity) waitedBefore(r *run.Run, at time.Time) bool {
	return w.FactsOf(r).QueuedAt.Add(w.grantSlack()).Before(at)
}
