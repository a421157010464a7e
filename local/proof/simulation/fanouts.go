package simulation

import (
	"context"
	"fmt"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// fanOut is the drawn job of a world with children.
type fanOut struct {
	items, parallel, maxFailures int
	failFast                     bool
	// children are the runs of the children by parent and number.
	children map[string]map[int]*run.Run
}

// drawFanOut draws the job of the world.
func (w *world) drawFanOut() {
	w.Requests, w.horizon = 0, w.Between(w.Longest, 3*w.Longest)
	w.Config.Policy.QueueTimeout *= 10
	w.jobIDs = []string{"job-1"}
	w.fan = &fanOut{
		items: 1 + w.Random.IntN(12), parallel: 1 + w.Random.IntN(5), maxFailures: w.Random.IntN(8), failFast: w.Chance(0.5),
		children: map[string]map[int]*run.Run{},
	}
}

// drawItems adds the items to the definition of the job.
func (w *world) drawItems(d map[string]any) {
	items := make([]string, w.fan.items)
	for i := range items {
		items[i] = fmt.Sprintf("item-%d", i)
	}
	d["items"], d["maxParallel"], d["maxFailures"], d["failFast"] = items, w.fan.parallel, w.fan.maxFailures, w.fan.failFast
	d["retryConfig"] = map[string]any{"maxRetries": w.Random.IntN(2), "initialDelay": "5s"}
}

// ownFanOut simulates the owner of the job: the owner stores it, runs it, and may cancel a run.
func (w *world) ownFanOut() {
	until := harness.Start.Add(w.horizon)
	w.putJob(w.jobIDs[0])
	for i := range 1 + w.Random.IntN(2) {
		in := jobs.RunRequest{Identity: harness.Client, JobID: w.jobIDs[0], CorrelationID: fmt.Sprintf("fan-out %d", i), IdempotencyKey: fmt.Sprintf("fan-out %d", i)}
		var accepted run.Run
		w.Persist(in.CorrelationID, func(ctx context.Context) (err error) {
			accepted, _, err = w.System.Jobs.RunJob(ctx, in)
			return err
		})
		w.accepted(in.CorrelationID, accepted)
		w.Time.Sleep(w.UpTo(w.horizon / 2))
		if w.Chance(0.3) {
			w.cancel(accepted.TaskID)
		}
	}
	w.Time.Sleep(until.Sub(w.Time.Now))
	w.ownersDone++
}

// checkFanOut checks changed runs: a child of a number is one run, no more children are active than
// the job allows, and the counted ends are those of the children.
func (w *world) checkFanOut(changed []*run.Run) {
	if w.fan == nil {
		return
	}
	for _, r := range changed {
		w.noteChild(r)
	}
	for _, r := range changed {
		if r.Fan == nil {
			continue
		}
		if counts := r.Fan.Counts(); counts.Failed+counts.Cancelled > w.fan.maxFailures && r.Fan.Stopped == "" {
			w.Fail("%s still starts children with %s, of which %d may fail", r.ID, counts, w.fan.maxFailures)
		}
		active := 0
		for n, child := range w.fan.children[r.ID] {
			if !child.State.Terminal() {
				active++
			}
			end, counted := r.Fan.EndOf(n)
			if actual, ended := endOfChild(child); counted && (!ended || actual != end) {
				w.Fail("%s counts child %d as %c, and that is %s", r.ID, n, end, child.State)
			}
		}
		if active = max(active, len(r.Fan.Active)); active > w.fan.parallel {
			w.Fail("%d children of %s are active, want at most %d", active, r.ID, w.fan.parallel)
		}
	}
}

// noteChild records a child. A number has one run.
func (w *world) noteChild(r *run.Run) {
	c := r.Child
	if c == nil || c.Parent == "" {
		return
	}
	of := w.fan.children[c.Parent]
	if of == nil {
		of = map[int]*run.Run{}
		w.fan.children[c.Parent] = of
	}
	if other := of[c.Number]; other != nil && other.ID != r.ID {
		w.Fail("%s and %s are both child %d of %s", other.ID, r.ID, c.Number, c.Parent)
	}
	of[c.Number] = r
}

// checkFanOutEnds checks the runs with children at the end: each item has a run unless it was
// skipped, the counts are those of the children, and the result is that of the counts.
func (w *world) checkFanOutEnds() {
	if w.fan == nil {
		return
	}
	for _, r := range w.Records.Ordered {
		if r.Fan == nil {
			continue
		}
		counts, ends := r.Fan.Counts(), map[fan.End]int{}
		for _, child := range w.fan.children[r.ID] {
			end, _ := endOfChild(child)
			ends[end]++
		}
		failed := counts.Failed + counts.Cancelled
		switch {
		case counts.Total != w.fan.items, counts.Waiting+counts.Running > 0:
			w.Fail("%s has ended with %s of %d items", r.ID, counts, w.fan.items)
		case counts.Succeeded != ends[fan.Succeeded], counts.Failed != ends[fan.Failed], counts.Cancelled != ends[fan.Cancelled]:
			w.Fail("%s counts %s, want %v", r.ID, counts, ends)
		case counts.Skipped > 0 && r.Fan.Stopped == "":
			w.Fail("%s has skipped children and did not stop", r.ID)
		case r.State == run.Completed && (failed > w.fan.maxFailures || counts.Skipped > 0):
			w.Fail("%s has succeeded with %s, of which %d may fail", r.ID, counts, w.fan.maxFailures)
		case r.State == run.Failed && failed <= w.fan.maxFailures && r.Fan.Stopped != fan.StopDeadline:
			w.Fail("%s has failed with %s, of which %d may fail: %v", r.ID, counts, w.fan.maxFailures, r.Fault)
		case r.State != run.Orphaned:
			w.checkResults(r)
		}
	}
}

// checkResults checks that the results of a run have a line for each item, in order.
func (w *world) checkResults(r *run.Run) {
	if r.Output == nil {
		w.Fail("%s has ended without results", r.ID)
		return
	}
	if !r.Output.DeletedAt.IsZero() {
		return
	}
	content := string(w.Buckets.Buckets[port.Accepted][r.Output.Key])
	lines := strings.Split(strings.TrimSpace(content), "\n")
	for i := range w.fan.items {
		if i >= len(lines) || !strings.HasPrefix(lines[i], fmt.Sprintf(`{"index":%d,"item":"item-%d",`, i, i)) {
			w.Fail("%s has the results %q, want those of %d items in order", r.ID, content, w.fan.items)
			return
		}
	}
}

// endOfChild returns how a child has ended by its record alone.
func endOfChild(r *run.Run) (end fan.End, ended bool) {
	switch {
	case !r.State.Terminal():
		return 0, false
	case r.State == run.Cancelled:
		return fan.Cancelled, true
	case r.State == run.Completed && r.Skipped && r.Missed.Reason == run.SkipUpstreamCancelled:
		return fan.Skipped, true
	case r.State == run.Completed && !r.Skipped:
		return fan.Succeeded, true
	}
	return fan.Failed, true
}
