package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/calendar"
	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// backfill is what a client knows of a backfill that it requested.
type backfill struct {
	parallel int
	// runs are the acknowledged runs by time, in seconds. done means that all were.
	runs map[int64]string
	done bool
}

// requestedRun reports whether a client requested the run, for now or for a time.
func requestedRun(r *run.Run) bool {
	return r.Trigger == run.TriggerManual || r.Trigger == run.TriggerBackfill
}

// beginBackfill backfills past times of the job, as the command line does. The client may be killed
// and start again, and may cancel the backfill as a whole.
func (w *world) beginBackfill(id string, n int) {
	m := w.jobs[id]
	if m == nil || m.epoch == nil {
		return
	}
	var past []time.Time
	from, to := w.Time.Now.Add(-w.UpTo(12*calendar.Day)), w.Time.Now.Add(-w.UpTo(calendar.Day)*time.Duration(w.Random.IntN(2)))
	for _, t := range m.epoch.times.list {
		if !t.Before(from) && !t.After(to) && len(past) < 10 {
			past = append(past, t)
		}
	}
	if w.Chance(0.5) {
		slices.Reverse(past)
	}
	name, b := fmt.Sprintf("backfill-%d", n), &backfill{parallel: 1 + w.Random.IntN(3), runs: map[int64]string{}}
	w.dates.backfills[name] = b
	w.Time.After(0, func() {
		if w.Chance(0.3) {
			w.backfill(id, name, b, past[:w.Random.IntN(len(past)+1)])
			w.Time.Sleep(w.UpTo(time.Minute))
		}
		b.done = w.backfill(id, name, b, past)
		if w.Chance(0.3) {
			w.Time.Sleep(w.UpTo(w.Longest))
			w.stopBackfill(name)
		}
	})
}

// backfill requests a run for each of the times until it is answered. It ends early when the
// schedule has changed.
func (w *world) backfill(id, name string, b *backfill, times []time.Time) (done bool) {
	for i, at := range times {
		in := jobs.RunRequest{
			Identity: harness.Client, JobID: id, CorrelationID: name, ScheduledAt: at, Backfill: name,
			Override: spec.Override{Key: b.key(name, i)},
		}
		for answered := false; !answered; {
			var r run.Run
			err := w.ClientCall(func(ctx context.Context) (err error) {
				r, _, err = w.System.Jobs.RunJob(ctx, in)
				return err
			})
			w.Note("backfill %s of %s: %v", name, at.Format(time.RFC3339), err)
			if f, known := errors.AsType[*fault.Fault](err); known && (f.Code == fault.InvalidRequest || f.Code == fault.NotFound) {
				if m := w.jobs[id]; m.epoch != nil && slices.ContainsFunc(m.epoch.times.list, at.Equal) {
					w.Fail("the backfill of %s is refused: %v", at, err)
				}
				return false
			}
			if answered = err == nil; !answered {
				w.Time.Sleep(w.UpTo(5 * time.Second))
				continue
			}
			if r.ID != run.FiringID(id, at) {
				w.Fail("the backfill of %s is run %s, want the run of its time", at, r.ID)
			}
			if b.runs[at.Unix()] == "" {
				b.runs[at.Unix()] = r.ID
				w.accepted(name, r)
			}
		}
	}
	return true
}

// stopBackfill cancels the runs of a backfill by its label, until all pages are answered.
func (w *world) stopBackfill(name string) {
	w.Time.Sleep(w.Lag + time.Second)
	selector, err := label.Parse(run.BackfillLabel + "=" + name)
	if err != nil {
		w.Broken = err
		return
	}
	var active []*run.Run
	for _, r := range w.Records.Ordered {
		if r.Trigger == run.TriggerBackfill && r.Labels[run.BackfillLabel] == name && !r.State.Terminal() {
			active = append(active, r)
		}
	}
	in := runs.Bulk{Identity: harness.Client, Filter: runs.Filter{Labels: selector}, Limit: 1 + w.Random.IntN(5), Reason: "user_requested"}
	for {
		var results []runs.BulkResult
		var next string
		err := w.ClientCall(func(ctx context.Context) (err error) {
			results, next, err = w.System.CancelAll(ctx, in)
			return err
		})
		w.Note("cancel of %s: %d runs, %v", name, len(results), err)
		if err != nil || slices.ContainsFunc(results, func(r runs.BulkResult) bool { return r.Err != nil }) {
			in.Cursor = "" // from the beginning
			w.Time.Sleep(w.UpTo(5 * time.Second))
			continue
		}
		if in.Cursor = next; next == "" {
			break
		}
	}
	for _, was := range active {
		if now, ok := w.Record(was.TaskID); ok && !now.State.Terminal() && now.Cancel == nil {
			w.Fail("%s of %s has no cancel request after the cancel of all its runs", was.ID, name)
		}
		w.dates.counts.Stopped++
	}
}

// checkBackfilled checks a run of a backfill: it is the run of its time, is less urgent than
// others, and is not too late.
func (w *world) checkBackfilled(r *run.Run) {
	if r.Trigger != run.TriggerBackfill || r.RetryOf != "" {
		return
	}
	name := r.Labels[run.BackfillLabel]
	switch {
	case w.dates.backfills[name] == nil:
		w.Fail("%s is of the backfill %q, which no client requested", r.ID, name)
	case r.ID != run.FiringID(r.JobID, r.ScheduledAt):
		w.Fail("%s is not the run of its time %s", r.ID, r.ScheduledAt)
	case !w.dates.named[r.ScheduledAt.Unix()] || r.ScheduledAt.After(r.CreatedAt.Add(2*w.Plan.Skew)):
		w.Fail("%s is a backfill of %s, which is no past time of the schedule", r.ID, r.ScheduledAt)
	case r.Priority != spec.PriorityBatch:
		w.Fail("%s of a backfill has the priority %q", r.ID, r.Priority)
	case violated(r, spec.CatchUpWindow):
		w.Fail("%s of a backfill is too late for its time", r.ID)
	case !w.dates.backfills[name].hasKey(name, r.Concurrency):
		w.Fail("%s of %s has the key %+v, which its client did not send", r.ID, name, r.Concurrency)
	}
}

// key is the concurrency key of the n-th run of the backfill.
func (b *backfill) key(name string, n int) string {
	return fmt.Sprintf("backfill:%s:%d", name, n%b.parallel)
}

// hasKey reports whether the key of a run is one of the backfill, of which one run is active at a
// time.
func (b *backfill) hasKey(name string, of *spec.Concurrency) bool {
	for n := range b.parallel {
		if of != nil && of.Key == b.key(name, n) && of.Limit == 1 {
			return true
		}
	}
	return false
}

// checkParallel checks that no more runs of a backfill are active than it allows: neither by their
// slots nor by their machines.
func (w *world) checkParallel() {
	active := map[string]int{}
	for _, r := range w.Records.Ordered {
		held := r.KeySlot.State == platform.SlotHeld && !r.State.Terminal()
		if r.Trigger == run.TriggerBackfill && (held || r.State == run.ContainerCreating || r.State == run.Running) {
			active[r.Labels[run.BackfillLabel]]++
		}
	}
	for name, n := range active {
		if b := w.dates.backfills[name]; b != nil && n > b.parallel {
			w.Fail("%d runs of %s are active, want at most %d", n, name, b.parallel)
		}
	}
}

// checkBackfill checks a backfill at the end: each acknowledged time has its run.
func (w *world) checkBackfill(name string, b *backfill) {
	for at, id := range b.runs {
		if r := w.Records.ByID[id]; r == nil || r.ScheduledAt.Unix() != at && r.Missed == nil {
			w.Fail("time %d of %s has no run", at, name)
		}
	}
}
