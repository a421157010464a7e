package inferences_test

import (
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/routing"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/usage"
)

// newShadowed copies all tasks for the model mock, in pool0, to the model big, in the pool cloud with
// four slots.
func newShadowed(t *testing.T) *inferring {
	t.Helper()
	h := newInferring(t, 1, 4, falls(platform.FallbackError))
	h.prices("mock", 0, catalog.Price{Output: 10})
	h.prices("big", 4096, catalog.Price{Input: 1, Output: 1000})
	_, err := h.models.Change(t.Context(), client, "mock", change.Precondition{}, false, func(d catalog.Definition) (catalog.Definition, error) {
		d.Shadow = []catalog.Share{{Model: "big", Percent: 100}}
		return d, nil
	})
	h.ok(err)
	return h
}

// copied returns the run of a task whose copy has ended.
func (h *inferring) copied(task string) run.Run {
	h.Helper()
	for r := h.ended(task); ; r = h.ended(task) {
		if r.Shadow == nil || r.Shadow.End != nil {
			return r
		}
		h.ok(h.sweeper.Await(h.Context(), r))
	}
}

// copyEnds checks the outcome of the copy of a task, and that the task is not affected.
func (h *inferring) copyEnds(r run.Run, outcome routing.ShadowOutcome, reason string) {
	h.Helper()
	if r.State != run.Completed || r.Slot.Pool != "pool0" || r.Attempt.Number != 1 || r.Reservation.Used.CostNano != 20 || r.Shadow == nil {
		h.Fatalf("got %s in pool %s with %+v used, want the task as without a copy", r.State, r.Slot.Pool, r.Reservation.Used)
	}
	end := r.Shadow.End
	if end.Outcome != outcome || !strings.Contains(end.Reason, reason) || (end.Reason == "") != (reason == "") {
		h.Errorf("got the copy %+v, want %s because of %q", end, outcome, reason)
	}
	if a := h.account(budget.ScopeTenant); a.Spent.CostNano%20 != 0 || a.Spent.CostNano/20 != a.Spent.Turns {
		h.Errorf("got %+v spent, want the tasks alone", a.Spent)
	}
	x, err := h.explains.ExplainRun(h.Context(), client, r.ID)
	h.ok(err)
	if x.Shadow == nil || x.Shadow.Task == nil || x.Shadow.Task.Output != 2 || !strings.Contains(x.Message, "copy of the task for model big") || !strings.Contains(x.Message, reason) {
		h.Errorf("got the explanation %q with %+v, want the copy in it", x.Message, x.Shadow)
	}
}

func TestTaskIsCopiedToAnotherModel(t *testing.T) {
	t.Parallel()
	h := newShadowed(t)
	r := h.copied(h.ask(2, inSession("s"), byKey("alice", access.Grant{Models: []string{"mock"}})))
	h.copyEnds(r, routing.ShadowCompleted, "")
	end := r.Shadow.End
	if want := end.Input + 2*1000; end.Pool != "cloud" || end.Output != 2 || end.Input == 0 || end.CostNano != want || end.Finish == "" {
		t.Errorf("got the copy %+v, want two tokens of the pool cloud for %d", end, want)
	}
	found, err := h.store.Usage(t.Context(), client.Tenant, "2026-03-01", "2026-03-01", false, "", 10)
	h.ok(err)
	cost := map[usage.Name]int64{}
	for _, e := range found {
		cost[usage.Name{Model: e.Model, Key: e.Key}] = e.CostNano
	}
	if len(cost) != 2 || cost[usage.Name{Model: "mock", Key: "alice"}] != 20 || cost[usage.Name{Model: "big", Key: usage.KeyShadow}] != end.CostNano {
		t.Errorf("got the usage %+v, want that of the task and, apart, of its copy", found)
	}
	if got := names(h.read(r.TaskID, inference.EventID{})); strings.Count(got, "t") != 2 {
		t.Errorf("got events %q, want two tokens", got)
	}
	if r := h.ended(h.ask(2, func(in *inferences.NewTask) { in.Unstored = true })); r.Shadow != nil {
		t.Errorf("got the copy %+v of an answer that is not to be stored, want none", r.Shadow)
	}
}

func TestFailureOfACopyChangesNothing(t *testing.T) {
	t.Parallel()
	h := newShadowed(t)
	for range 4 {
		h.engines["c1"].FailNext(mockengine.FailStart, 0)
		h.copyEnds(h.copied(h.ask(2)), routing.ShadowFailed, "before its first token")
	}
	h.copyEnds(h.copied(h.ask(2)), routing.ShadowCompleted, "")
	long := func(in *inferences.NewTask) { in.Request.Prompt = strings.Repeat("word ", 4000) }
	h.copyEnds(h.copied(h.ask(2, long)), routing.ShadowDropped, "do not fit into a context of 4096")
}

// TestBusyPoolGetsNoCopies fills the pool of the other model. A copy that is already sent ends when a
// task needs its slot.
func TestBusyPoolGetsNoCopies(t *testing.T) {
	t.Parallel()
	h := newShadowed(t)
	big := func(in *inferences.NewTask) { in.Model = "big" }
	c1 := h.engines["c1"]
	c1.FailNext(mockengine.FailStall, 0)
	first := h.ended(h.ask(2))
	c1.WaitRunning(1)
	for n := range 4 {
		c1.FailNext(mockengine.FailStall, 0)
		h.ask(2, big)
		c1.WaitRunning(min(n+2, 4))
	}
	h.copyEnds(h.copied(first.TaskID), routing.ShadowDropped, "a task needs the slot")
	h.copyEnds(h.copied(h.ask(2)), routing.ShadowDropped, "no free slot")
	if n, err := h.store.QueueLength(t.Context(), client.Tenant, "cloud", 10); err != nil || n != 0 {
		t.Errorf("got %d queued, %v, want none", n, err)
	}
}

// TestCrashLosesTheCopyAlone stops the dispatcher while a copy runs.
func TestCrashLosesTheCopyAlone(t *testing.T) {
	t.Parallel()
	h := newShadowed(t)
	h.engines["c1"].FailNext(mockengine.FailStall, 0)
	r := h.ended(h.ask(2))
	h.engines["c1"].WaitRunning(1)
	h.restart()
	h.ok(h.sweeper.Advance(t.Context(), r.Ref()))
	x, err := h.explains.ExplainRun(t.Context(), client, r.ID)
	h.ok(err)
	if r = h.ended(r.TaskID); r.State != run.Completed || r.Shadow.End != nil || !strings.Contains(x.Message, "or was lost") {
		t.Errorf("got %s with the copy %+v and %q, want the task alone", r.State, r.Shadow.End, x.Message)
	}
	h.copyEnds(h.copied(h.ask(2)), routing.ShadowCompleted, "")
}
