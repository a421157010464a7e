package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/calendar"
	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/app/downloads"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// withOutput returns the ended runs of the job whose output was not deleted.
func (w *world) withOutput() []*run.Run {
	return slices.DeleteFunc(slices.Clone(w.Records.Ordered), func(r *run.Run) bool {
		return !r.State.Terminal() || r.Output == nil || !r.Output.DeletedAt.IsZero()
	})
}

// pinRun pins a run, or unpins a pinned one.
func (w *world) pinRun() {
	found := w.withOutput()
	if len(found) == 0 {
		return
	}
	r := found[w.Random.IntN(len(found))]
	w.setPin(r, !w.dates.pinned[r.ID] || w.Chance(0.3))
}

// pinLate pins runs shortly before and after the expiry of their outputs, until the owner of the job
// ends.
func (w *world) pinLate() {
	for w.ownersDone == 0 {
		w.Time.Sleep(w.UpTo(5 * time.Minute))
		for _, r := range w.withOutput() {
			if at := r.Output.ExpiresAt; at.IsZero() || w.Time.Now.Before(at.Add(-pinMargin-time.Minute)) || w.Chance(0.3) {
				continue
			}
			if r = w.Records.ByID[r.ID]; r.Output.DeletedAt.IsZero() {
				w.setPin(r, true)
			}
		}
	}
}

// setPin pins or unpins a run.
func (w *world) setPin(r *run.Run, pin bool) {
	if !pin {
		delete(w.dates.pinned, r.ID)
	}
	var after run.Run
	var late error // the answer that the output has expired
	w.Persist(fmt.Sprintf("pin %t of %s", pin, r.ID), func(ctx context.Context) (err error) {
		after, err = w.System.Pin(ctx, harness.Client, r.TaskID, pin)
		if late = nil; fault.Is(err, fault.OutputExpired) {
			late, err = err, nil
		}
		return err
	})
	if late != nil {
		w.dates.counts.Late++
		if now := w.Records.ByID[r.ID]; !pin || now.Output.ExpiresAt.IsZero() || now.Output.ExpiresAt.After(w.Time.Now.Add(pinMargin+2*w.Plan.Skew)) {
			w.Fail("the pin %t of %s is refused: %v", pin, r.ID, late)
		}
		return
	}
	if (after.Pin != nil) != pin {
		w.Fail("acknowledged change of %s: got the pin %v, want %t", r.ID, after.Pin, pin)
	}
	if pin {
		w.dates.pinned[r.ID] = true
	}
}

// pinMargin is the time before the expiry of an output from which a pin is refused.
const pinMargin = 2 * time.Minute

// downloadRun downloads the output of a run.
func (w *world) downloadRun() {
	found := w.withOutput()
	if len(found) == 0 {
		return
	}
	r := found[w.Random.IntN(len(found))]
	err := w.ClientCall(func(ctx context.Context) error {
		var d downloads.Downloadable
		d, err := w.System.Output(ctx, harness.Client, r.TaskID)
		if err == nil {
			err = w.System.Downloaded(ctx, d)
		}
		return err
	})
	w.Note("download of %s: %v", r.ID, err)
}

// newer counts the ended runs of the job with the same kind of end that are newer.
func (w *world) newer(r *run.Run) (count int) {
	good := func(r *run.Run) bool { return r.State == run.Completed }
	for _, other := range w.Records.Ordered {
		if other.JobID == r.JobID && other.State.Terminal() && !other.Skipped && good(other) == good(r) && other.CreatedAt.After(r.CreatedAt) {
			count++
		}
	}
	return count
}

// checkKept checks that an output is not deleted before its time, as one of the newest, or while it
// is pinned.
func (w *world) checkKept(r *run.Run) {
	if r.Output == nil || r.Output.DeletedAt.IsZero() || w.dates.gone[r.ID] {
		return
	}
	w.dates.gone[r.ID] = true
	w.dates.counts.Deleted++
	switch age := w.Time.Now.Sub(r.Output.AcceptedAt); {
	case age+2*w.Plan.Skew < w.dates.outputs:
		w.Fail("the output of %s was deleted after %s, want %s", r.ID, age, w.dates.outputs)
	case w.newer(r) < w.dates.newest:
		w.Fail("the output of %s was deleted with %d newer ones, want %d", r.ID, w.newer(r), w.dates.newest)
	case w.dates.pinned[r.ID] || r.Pin != nil:
		w.Fail("the output of %s was deleted, and the run is pinned", r.ID)
	}
}

// checkKeptEnd checks at the end that an output was deleted that nothing keeps.
func (w *world) checkKeptEnd(r *run.Run) {
	if r.Output == nil || !r.Output.DeletedAt.IsZero() {
		return
	}
	w.dates.counts.Kept++
	due := r.Output.AcceptedAt.Add(w.dates.outputs + 2*calendar.Day)
	if r.Pin == nil && w.newer(r) >= w.dates.newest && w.Overdue(due, calendar.Day, calendar.Day+w.Patience()) > 0 {
		w.Fail("the output of %s was accepted at %s, and is not deleted at %s", r.ID, r.Output.AcceptedAt, w.Time.Now)
	}
}
