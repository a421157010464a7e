package runs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/explain"
	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// rerun requests a rerun of a run with the jobs that come after it.
func (h *fixture) rerun(id, key string) (run.Run, bool, error) {
	return h.service.Runs.Retry(h.Context(), runs.RetryRequest{Identity: client, TaskID: id, IdempotencyKey: key, Downstream: true})
}

// endAll lets the runs of jobs in a graph succeed, one after the other.
func (h *fixture) endAll(root run.Run, ids ...string) {
	h.Helper()
	place := root.PlaceInGraph()
	for _, id := range ids {
		h.exit(place.RunID(id), 0)
	}
}

// TestRerunDownstream reruns a job in the middle of a graph. The jobs after it run again, after a
// run of the first graph that is no part of the rerun.
func TestRerunDownstream(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.beginGraph()
	h.exit(firstRun("prices"), 1)
	if _, _, err := h.rerun(firstRun("prices"), ""); !fault.Is(err, fault.NotEnded) || !strings.Contains(err.Error(), "run "+firstRun("alert")+" of job alert") && !strings.Contains(err.Error(), firstRun("stock")) && !strings.Contains(err.Error(), firstRun("tidy")) {
		t.Errorf("got %v while runs of the graph are under way, want NotEnded with one of them", err)
	}
	h.exit(firstRun("stock"), 0)
	h.exit(firstRun("alert"), 0)
	h.exit(firstRun("tidy"), 0)
	h.wantGraph("report upstream_failed", "report")
	x, err := h.service.Explanations.ExplainRun(h.Context(), client, firstRun("report"))
	h.ok(err)
	if c := x.Change; c == nil || c.Kind != explain.RerunDownstream || c.Name != firstRun("prices") {
		t.Errorf("got the change %+v of a skipped run, want a rerun of prices", c)
	}

	root, existing, err := h.rerun(firstRun("prices"), "again")
	h.ok(err)
	same, known, err := h.rerun(firstRun("prices"), "again")
	h.ok(err)
	if existing || !known || same.ID != root.ID {
		t.Errorf("got run %s and %s with the same key, want one", root.ID, same.ID)
	}
	if _, _, err := h.rerun(firstRun("prices"), "other"); !fault.Is(err, fault.NotEnded) || !strings.Contains(err.Error(), root.ID) {
		t.Errorf("got %v for a second rerun, want NotEnded with %s", err, root.ID)
	}
	h.step()
	h.exit(root.ID, 0)
	h.endAll(root, "report", "tidy")
	h.wantGraph("report Completed, report upstream_failed", "report")
	h.wantGraph("tidy Completed, tidy Completed", "tidy")
	h.wantGraph("stock Completed", "stock")
	h.wantGraph("alert upstream_failed, alert Completed", "alert")
	report := h.record("report:" + root.ID)
	if up := report.Graph.Upstream; len(up) != 2 || up[0].RunID != root.ID || up[1].RunID != firstRun("stock") || !report.Scheduled().Equal(first) {
		t.Errorf("got upstream %+v at %s, want the rerun and the first run of stock at %s", up, report.Scheduled(), first)
	}

	// A rerun of another part uses the newest runs.
	second, _, err := h.rerun(firstRun("stock"), "")
	h.ok(err)
	h.step()
	h.exit(second.ID, 0)
	h.endAll(second, "report", "tidy")
	if up := h.record("report:" + second.ID).Graph.Upstream; len(up) != 2 || up[0].RunID != root.ID || up[1].RunID != second.ID {
		t.Errorf("got upstream %+v, want the reruns of prices and stock", up)
	}
}

// TestRerunOfACancelledGraph reruns a part of a graph whose first run was cancelled, and cancels the
// rerun.
func TestRerunOfACancelledGraph(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.beginGraph()
	h.exit(firstRun("stock"), 0)
	_, err := h.service.Cancel(h.Context(), client, firstRun("extract"), "")
	h.ok(err)
	for range 10 {
		h.advance(15 * time.Second)
		h.sweep()
	}
	h.wantGraph("prices Cancelled, stock Completed, report upstream_cancelled", "prices", "stock", "report")
	root, _, err := h.rerun(firstRun("prices"), "")
	h.ok(err)
	h.step()
	h.exit(root.ID, 0)
	h.wantGraph("report Running, report upstream_cancelled", "report")
	_, err = h.service.Cancel(h.Context(), client, root.ID, "")
	h.ok(err)
	for range 10 {
		h.advance(15 * time.Second)
		h.sweep()
	}
	h.wantGraph("report Cancelled, report upstream_cancelled", "report")
	h.wantGraph("tidy upstream_cancelled, tidy upstream_cancelled", "tidy")
}

// TestRefusedReruns requests reruns that make no sense.
func TestRefusedReruns(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.putJobs("a\n", "other\n", "b\nafter: [a, other]\n", "alone\n")
	task := h.post()
	h.ok(h.report(h.runner.last(), success()))
	h.step()
	start := func(id string) run.Run {
		r, _, err := h.service.Jobs.RunJob(h.Context(), jobs.RunRequest{Identity: client, JobID: id})
		h.ok(err)
		h.step()
		h.exit(r.ID, 0)
		return r
	}
	a, alone := start("a"), start("alone")
	for id, want := range map[string]string{
		task:     "only a run of a stored job",
		alone.ID: "no job comes after job alone",
		a.ID:     "job b also comes after job other, which has no run in the graph",
	} {
		if _, _, err := h.rerun(id, ""); err == nil || !strings.Contains(err.Error(), want) || fault.Of(err).Field != "downstream" {
			t.Errorf("%s: got %v, want %s", id, err, want)
		}
	}
	h.ok(h.service.Jobs.Delete(h.Context(), client, "alone", change.Precondition{}))
	if _, _, err := h.rerun(alone.ID, ""); err == nil || !strings.Contains(err.Error(), "job alone was deleted") {
		t.Errorf("got %v, want a refusal that names the deleted job", err)
	}
}

// TestExplainAwaitedJobs explains a job that comes after others, before, during and after a graph.
func TestExplainAwaitedJobs(t *testing.T) {
	t.Parallel()
	h := setup(t)
	want := func(reason explain.JobReason, message string) {
		h.Helper()
		x, err := h.service.Explanations.ExplainJob(h.Context(), client, "report")
		h.ok(err)
		if x.Reason != reason || !strings.Contains(x.Message, message) || len(x.Upstream) != 2 {
			t.Errorf("got %s, %s, upstream %+v; want %s, %s", x.Reason, x.Message, x.Upstream, reason, message)
		}
	}
	h.putJobs(diamond...)
	want(explain.JobFollows, "after the next runs of job prices, stock")
	h.wake(job.Ref{Tenant: client.Tenant, ID: "extract"})
	h.exit(firstRun("extract"), 0)
	h.exit(firstRun("prices"), 0)
	want(explain.JobAwaits, "the job waits for run "+firstRun("stock")+" of job stock, which is Running")
	x, err := h.service.Explanations.ExplainRun(h.Context(), client, firstRun("stock"))
	h.ok(err)
	if !strings.HasSuffix(x.Message, "; its end is awaited by job report") {
		t.Errorf("got %q, want the job that awaits the run", x.Message)
	}
	_, err = h.service.Jobs.Pause(h.Context(), client, "report", change.Precondition{})
	h.ok(err)
	want(explain.JobPaused, "skipped after the jobs")
	_, err = h.service.Jobs.Resume(h.Context(), client, "report", change.Precondition{})
	h.ok(err)
	h.exit(firstRun("stock"), 0)
	want(explain.JobFollows, "no run is awaited")
}

// skippedChildren stores n skipped children of a run, and returns the last one.
func (h *fixture) skippedChildren(parent string, n int) (child run.Run) {
	h.Helper()
	for i := range n {
		h.clock.to(h.clock.now.Add(time.Second))
		child = h.record(parent).ChildOf(i, fan.Item{Text: "x"}, h.clock.now)
		child.Missed = &run.Missed{Reason: run.SkipInputs, Count: 1}
		_, err := h.store.Create(h.Context(), port.WriteOf(run.NewSkipped(child, h.clock.now)), nil)
		h.ok(err)
	}
	return child
}

// TestChildIsNoRunOfItsGraph reruns a part of a graph after a run with many children.
func TestChildIsNoRunOfItsGraph(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.beginGraph()
	h.exit(firstRun("prices"), 0)
	h.exit(firstRun("stock"), 0)
	h.exit(firstRun("report"), 0)
	h.exit(firstRun("tidy"), 0)
	child := h.skippedChildren(firstRun("stock"), 25)
	if _, _, err := h.rerun(child.ID, ""); err == nil || !strings.Contains(err.Error(), "a child of run "+firstRun("stock")) {
		t.Errorf("got %v, want a refusal that names the parent", err)
	}
	root, _, err := h.rerun(firstRun("prices"), "")
	h.ok(err)
	if given := root.Graph.Given; len(given) != 1 || given[0].RunID != firstRun("stock") {
		t.Errorf("got %+v, want the run of stock itself", given)
	}
}
