package simulation

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
)

// item is an item of a sensor.
type item struct {
	name string
	// event is that of a client. key and content are those of an object.
	event        sensor.Event
	key, content string
	// may: the item may have a run. due is the time since which it must get one; zero if it need
	// not. old: it is an object that is older than the sensor.
	may, old bool
	due      time.Time
	// run is its run, and runID that of the acknowledgement of its event.
	run   *run.Run
	runID string
}

// add returns the item of an identity.
func (s *sensorJob) add(name string) *item {
	if s.items[name] == nil {
		s.items[name] = &item{name: name}
		s.order = append(s.order, s.items[name])
	}
	return s.items[name]
}

// checkItems checks new runs of items: each item has one run, and only an item that the sensor takes.
// An acknowledged event has its run.
func (w *world) checkItems(changed []*run.Run) {
	if w.sensed == nil {
		return
	}
	for _, r := range changed {
		if r.Trigger == run.TriggerEvent && r.RetryOf == "" {
			w.noteItem(r)
		}
	}
	for _, id := range w.jobIDs {
		for _, of := range w.sensed.jobs[id].order {
			if of.runID != "" && of.run == nil {
				w.Fail("event %s of %s is acknowledged and has no run", of.name, id)
			}
		}
	}
}

// noteItem records the run of an item.
func (w *world) noteItem(r *run.Run) {
	of := w.sensed.jobs[r.JobID].items[identity(r.Event)]
	switch {
	case of == nil:
		w.Fail("%s is a run of the item %s, which does not exist", r.ID, identity(r.Event))
	case !of.may:
		w.Fail("%s is a run of the item %s, which the sensor does not take", r.ID, of.name)
	case of.run == nil:
		of.run = r
		w.sensed.counts.Items++
	case of.run.ID != r.ID:
		w.Fail("%s and %s are runs of the item %s", of.run.ID, r.ID, of.name)
	}
}

// itemsTaken reports whether each item has the run that it must have, and no message is left.
func (w *world) itemsTaken(s *sensorJob) bool {
	for _, of := range s.order {
		if !of.due.IsZero() && of.run == nil || s.takesEvents && of.may && of.runID == "" {
			return false
		}
	}
	return w.Items.Left(s.queue.URL) == 0
}

// checkItemsInTime checks that each polled item gets its run in time. A pause and a full queue delay
// it.
func (w *world) checkItemsInTime() {
	if w.sensed == nil {
		return
	}
	for _, id := range w.jobIDs {
		s, m := w.sensed.jobs[id], w.jobs[id]
		if m == nil || m.record == nil || m.record.Paused || (s.limited || w.QueueLimited()) && w.anyActive() {
			s.freeSince = w.Time.Now
		}
		kind := 2*(w.Items.Every+time.Minute) + harness.Slowest + 5*time.Minute
		mean := kind + w.Patience()
		if w.Items.Faults > 0 {
			kind = mean
		}
		for _, of := range s.order {
			since := of.due
			if s.freeSince.After(since) {
				since = s.freeSince
			}
			if late := w.Overdue(since, kind, mean); !of.due.IsZero() && of.run == nil && late > 0 {
				w.Fail("item %s of %s is lost: it has no run %s after its limit", of.name, id, late)
			}
		}
	}
}

// anyActive reports whether a run has not ended.
func (w *world) anyActive() bool {
	for _, r := range w.Records.Ordered {
		if !r.State.Terminal() {
			return true
		}
	}
	return false
}

// itemWaiting describes an item without a run that must have one; empty without one.
func (w *world) itemWaiting() string {
	if w.sensed == nil {
		return ""
	}
	for _, id := range w.jobIDs {
		s := w.sensed.jobs[id]
		for _, of := range s.order {
			if !of.due.IsZero() && of.run == nil {
				return fmt.Sprintf("item %s of %s has no run since %s", of.name, id, of.due.Sub(harness.Start))
			}
		}
		if left := w.Items.Left(s.queue.URL); left > 0 {
			return fmt.Sprintf("%d messages of %s are left", left, id)
		}
	}
	return ""
}

// checkItemEnds checks at the end that no item is lost.
func (w *world) checkItemEnds() {
	if waiting := w.itemWaiting(); waiting != "" {
		w.Fail("%s", waiting)
	}
}
