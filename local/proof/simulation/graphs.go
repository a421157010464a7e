package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// maxGraph is the largest number of jobs in the graph of a world. A world on AWS makes more calls
// for each of them.
func (w *world) maxGraph() int {
	if w.OnAWS() {
		return 15
	}
	return 50
}

// graph is the drawn graph of a world. The first job comes after no other.
type graph struct {
	needs map[string][]run.Need
	// late is a job that is stored when the first graph is under way; empty without one. No job
	// comes after it.
	late string
	// runs are the runs of the jobs in each graph, by graph and job.
	runs map[[2]string]*run.Run
	// cancelledAt is when the graph was seen to be cancelled at a run.
	cancelledAt map[string]time.Time
}

// drawGraph draws the jobs of the world, each after up to three earlier ones.
func (w *world) drawGraph() {
	w.Requests, w.horizon = 0, w.Between(time.Minute, 10*time.Minute)
	w.Config.MaxMachines *= 3
	w.Config.Policy.QueueTimeout = max(w.Config.Policy.QueueTimeout, time.Hour)
	w.graph = &graph{needs: map[string][]run.Need{}, runs: map[[2]string]*run.Run{}, cancelledAt: map[string]time.Time{}}
	n := 2 + w.Random.IntN(w.maxGraph()-1)
	for i := range n {
		id := fmt.Sprintf("job-%d", i+1)
		w.jobIDs = append(w.jobIDs, id)
		if i == 0 {
			continue
		}
		for _, j := range w.Random.Perm(i)[:1+w.Random.IntN(min(i, 3))] {
			w.graph.needs[id] = append(w.graph.needs[id], run.Need{
				JobID: w.jobIDs[j], When: []run.When{run.WhenSuccess, run.WhenAlways, run.WhenAlways, run.WhenFailure}[w.Random.IntN(4)],
			})
		}
	}
	if n > 2 && w.Chance(0.5) {
		w.graph.late = w.jobIDs[n-1]
	}
}

// drawNode adds the jobs that a job comes after to its definition.
func (w *world) drawNode(id string, d map[string]any) {
	var after []map[string]any
	for _, n := range w.graph.needs[id] {
		after = append(after, map[string]any{"job": n.JobID, "when": n.When})
	}
	if len(after) > 0 {
		d["after"] = after
	}
	d["retryConfig"] = map[string]any{"maxRetries": w.Random.IntN(2), "initialDelay": "5s"}
}

// ownGraph simulates the owner of the jobs of a graph: the owner stores them, runs the first one up
// to three times, also for a time, and reruns parts.
func (w *world) ownGraph() {
	until := harness.Start.Add(w.horizon)
	for _, id := range w.jobIDs {
		if id != w.graph.late {
			w.putJob(id)
		}
	}
	for i := range 1 + w.Random.IntN(3) {
		w.beginGraph(i)
		w.Time.Sleep(w.UpTo(w.horizon / 3))
		if w.Chance(0.4) {
			w.cancelFirst()
		}
		if i == 0 && w.graph.late != "" {
			w.putJob(w.graph.late)
		}
	}
	w.Time.Sleep(until.Sub(w.Time.Now))
	for range w.Random.IntN(10) {
		w.rerunPart()
		w.Time.Sleep(w.UpTo(time.Hour))
	}
	w.ownersDone += len(w.jobIDs)
}

// beginGraph runs the first job until a request is answered.
func (w *world) beginGraph(i int) {
	in := jobs.RunRequest{Identity: harness.Client, JobID: w.jobIDs[0], CorrelationID: fmt.Sprintf("graph %d", i), IdempotencyKey: fmt.Sprintf("graph %d", i)}
	if w.Chance(0.5) {
		in.ScheduledAt = w.Time.Now.Add(time.Minute + w.UpTo(time.Minute)).Truncate(time.Second)
	}
	var accepted run.Run
	w.Persist(in.CorrelationID, func(ctx context.Context) (err error) {
		accepted, _, err = w.System.Jobs.RunJob(ctx, in)
		return err
	})
	w.accepted(in.CorrelationID, accepted)
}

// cancelFirst cancels one of the first runs of a graph, whose run may have ended.
func (w *world) cancelFirst() {
	first := slices.DeleteFunc(slices.Clone(w.Records.Ordered), func(r *run.Run) bool { return r.JobID != w.jobIDs[0] })
	if len(first) > 0 {
		w.cancel(first[w.Random.IntN(len(first))].TaskID)
	}
}

// rerunPart reruns an ended run of the graph with the jobs that come after it. A refusal is no
// defect: other runs may be under way.
func (w *world) rerunPart() {
	ended := slices.DeleteFunc(slices.Clone(w.Records.Ordered), func(r *run.Run) bool { return !r.State.Terminal() })
	if len(ended) == 0 {
		return
	}
	of := ended[w.Random.IntN(len(ended))]
	in := runs.RetryRequest{Identity: harness.Client, TaskID: of.TaskID, IdempotencyKey: fmt.Sprintf("part at %s", w.Time.Now.Sub(harness.Start)), Downstream: true, CorrelationID: "part"}
	var accepted run.Run
	err := w.ClientCall(func(ctx context.Context) (err error) {
		accepted, _, err = w.System.Retry(ctx, in)
		return err
	})
	w.Note("rerun of %s with what comes after it: %v", of.ID, err)
	if err == nil {
		w.accepted("part after "+of.ID, accepted)
	}
}

// graphOf returns the graph of a run that is part of one. A retry alone is part of none.
func graphOf(r *run.Run) (g run.Graph, ok bool) {
	g = r.PlaceInGraph()
	return g, r.JobID != "" && (r.RetryOf == "" || g.Root.RunID == r.ID && r.Graph != nil)
}

// checkGraph checks a new run of a graph: it is the only one of its job, and the runs that it comes
// after have ended as needed, or it is skipped.
func (w *world) checkGraph(r *run.Run) {
	g, ok := graphOf(r)
	if w.graph == nil || !ok {
		return
	}
	at := [2]string{g.Key, r.JobID}
	if other := w.graph.runs[at]; other != nil && other.ID != r.ID {
		w.Fail("%s and %s are runs of one job in graph %s", other.ID, r.ID, g.Key)
	}
	w.graph.runs[at] = r
	if r.Trigger != run.TriggerAfter || g.Root.RunID == r.ID {
		return
	}
	met, cancelled, known := w.needsOf(r, g)
	switch {
	case r.Missed == nil && !known:
		w.Fail("%s began before the runs that it comes after had ended", r.ID)
	case r.Missed == nil && !met:
		w.Fail("%s began although a run that it comes after did not end as needed", r.ID)
	case r.Missed == nil, r.Missed.Reason == run.SkipQueueFull && met && known, r.Missed.Reason == run.SkipUpstreamFailed && !met, r.Missed.Reason == run.SkipUpstreamCancelled && cancelled:
	default:
		w.Fail("%s is skipped by %s: %s; met %v, cancelled %v", r.ID, r.Missed.Reason, r.Missed, met, cancelled)
	}
}

// needsOf reports whether the runs that r comes after have ended as needed. known is false while one
// of them has not ended. cancelled reports that the graph was cancelled at one of them.
func (w *world) needsOf(r *run.Run, g run.Graph) (met, cancelled, known bool) {
	met, known = true, true
	for _, n := range w.graph.needs[r.JobID] {
		up := w.Records.ByID[g.RunID(n.JobID)]
		if up == nil || !up.State.Terminal() || up.EndedAt.After(r.CreatedAt.Add(2*w.Plan.Skew)) {
			known = false
			continue
		}
		cancelled = cancelled || up.CancelsRest
		ended := map[run.When]bool{
			run.WhenAlways: true, run.WhenFailure: up.State == run.Failed || up.State == run.Orphaned,
			run.WhenSuccess: up.State == run.Completed && !up.Skipped,
		}
		met = met && ended[n.When]
	}
	return met, cancelled, known
}

// checkRestCancelled checks that a run was cancelled because its graph was cancelled at the run of a
// job that it comes after.
func (w *world) checkRestCancelled(r *run.Run, job string) {
	g, ok := graphOf(r)
	up := w.Records.ByID[g.RunID(job)]
	if !ok || up == nil || !up.CancelsRest || !slices.ContainsFunc(w.graph.needs[r.JobID], func(n run.Need) bool { return n.JobID == job }) {
		w.Fail("%s was cancelled by %s, at which its graph was not cancelled", r.ID, job)
	}
}

// noteCancelled records when the graph was cancelled at a run.
func (w *world) noteCancelled(before, r *run.Run) {
	if w.graph != nil && r.CancelsRest && (before == nil || !before.CancelsRest) {
		w.graph.cancelledAt[r.ID] = w.Time.Now
	}
}

// checkCancelledLate checks that the run of a job did not continue long after its graph was cancelled
// at a run that it comes after.
func (w *world) checkCancelledLate(r *run.Run) {
	g, ok := graphOf(r)
	if !ok || r.Cancel != nil || r.Missed != nil {
		return
	}
	for _, n := range w.graph.needs[r.JobID] {
		at, cancelled := w.graph.cancelledAt[g.RunID(n.JobID)]
		if cancelled && !g.Gives(g.RunID(n.JobID)) && w.Calm() && r.EndedAt.After(at.Add(2*time.Minute+2*w.Config.SweepInterval)) {
			w.Fail("%s ended as %s %s after its graph was cancelled at job %s", r.ID, r.State, r.EndedAt.Sub(at), n.JobID)
		}
	}
}

// checkGraphEnds checks that each job that comes after one with a run in a graph has a run in it.
func (w *world) checkGraphEnds() {
	if w.graph == nil {
		return
	}
	for _, r := range w.Records.Ordered {
		w.checkCancelledLate(r)
		g, ok := graphOf(r)
		if !ok || r.Execution.Pending != nil {
			continue
		}
		for _, id := range w.jobIDs {
			if id == w.graph.late || w.graph.runs[[2]string{g.Key, id}] != nil {
				continue
			}
			if slices.ContainsFunc(w.graph.needs[id], func(n run.Need) bool { return n.JobID == r.JobID }) {
				w.Fail("%s has ended, and job %s has no run in graph %s", r.ID, id, g.Key)
			}
		}
	}
}
