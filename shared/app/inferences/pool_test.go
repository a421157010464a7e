package inferences_test

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/balance"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
)

// TestTaskGoesToTheLeastUsedPool fills two pools of a model, of which the second has twice as
// many slots.
func TestTaskGoesToTheLeastUsedPool(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 8)
	place := platform.EnginePlace{Kind: platform.EngineMock, Model: "mock", Slots: 16, Replicas: []platform.EngineReplica{{ID: "r1"}}}
	h.ok(h.store.SavePool(t.Context(), platform.Pool{Tenant: client.Tenant, ID: "pool1", Limit: 4, QueueLimit: 10, Engine: &place}))
	first, err := h.store.LoadPool(t.Context(), platform.PoolRef{Tenant: client.Tenant, ID: "pool0"})
	h.ok(err)
	first.Limit = 2
	h.ok(h.store.SavePool(t.Context(), first))
	in := map[string]int{}
	for range 9 {
		h.engines["r1"].FailNext(mockengine.FailStall, 0)
		r, err := h.store.Find(t.Context(), client.Tenant, h.ask(1))
		h.ok(err)
		in[r.Slot.Pool]++
	}
	if in["pool0"] != 3 || in["pool1"] != 6 {
		t.Errorf("got %v, want three and six tasks", in)
	}
}

// TestOnlyFailuresLetAReplicaRest cancels more tasks in a row than the failures after which a
// replica rests, and fails as many attempts, but with answers between them. A replica that
// rested would answer none of the tasks, because the clock does not move.
func TestOnlyFailuresLetAReplicaRest(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	for range 5 {
		h.engines["r1"].FailNext(mockengine.FailStall, 1)
		task := h.ask(3)
		h.seen(task, inference.NameToken)
		_, err := h.tasks.Cancel(t.Context(), client, task, "")
		h.ok(err)
		h.ended(task)
	}
	for range 3 {
		h.engines["r1"].FailNext(mockengine.FailStart, 0)
		h.engines["r1"].FailNext(mockengine.FailStart, 0)
		if r := h.ended(h.ask(1)); r.State != run.Completed || r.Attempt.Number != 3 {
			t.Fatalf("got %s in attempt %d, want Completed in the third", r.State, r.Attempt.Number)
		}
	}
}

// TestAnsweredErrorsLetNoLastReplicaRest fails each attempt of several tasks with an error of
// the only engine, more often than the failures after which a replica rests. The next task
// completes, although the clock does not move.
func TestAnsweredErrorsLetNoLastReplicaRest(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	for range 4 {
		for range 3 {
			h.engines["r1"].FailNext(mockengine.FailStart, 0)
		}
		if r := h.ended(h.ask(1)); r.State != run.Failed || r.Attempt.Number != 3 {
			t.Fatalf("got %s in attempt %d, want Failed in the third", r.State, r.Attempt.Number)
		}
	}
	if r := h.ended(h.ask(1)); r.State != run.Completed || r.Attempt.Number != 1 {
		t.Errorf("got %s in attempt %d, want Completed in the first", r.State, r.Attempt.Number)
	}
}

// TestBusyEngineIsAskedAgain lets the only engine of a pool refuse a task as busy, more often
// than a task has attempts: for a while, until a cancel, and until the deadline.
func TestBusyEngineIsAskedAgain(t *testing.T) {
	t.Parallel()
	t.Run("for a while", func(t *testing.T) {
		t.Parallel()
		h := newInferring(t, 1, 1)
		for range 12 {
			h.engines["r1"].FailNext(mockengine.FailBusy, 0)
		}
		defer h.passes(50 * time.Millisecond)()
		r := h.ended(h.ask(3))
		if r.State != run.Completed || r.Attempt.Number != 1 {
			t.Fatalf("got %s in attempt %d with %v, want Completed in the first", r.State, r.Attempt.Number, r.Fault)
		}
		if g := r.Generation; g.RequestedAt.Sub(r.Attempt.StartedAt) < 5*time.Second || g.DecodeMS > r.EndedAt.Sub(g.RequestedAt).Milliseconds() {
			t.Errorf("got %+v after a start at %v, want the time of the last request alone", g, r.Attempt.StartedAt)
		}
	})
	for how, want := range map[string]run.State{"until a cancel": run.Cancelled, "until the deadline": run.Failed} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			h := newInferring(t, 1, 1)
			for range 1000 {
				h.engines["r1"].FailNext(mockengine.FailBusy, 0)
			}
			task := h.ask(3, func(in *inferences.NewTask) { in.Within = 20 * time.Second })
			h.seen(task, "started")
			if want == run.Cancelled {
				_, err := h.tasks.Cancel(t.Context(), client, task, "")
				h.ok(err)
			}
			defer h.passes(50 * time.Millisecond)()
			r := h.ended(task)
			if r.State != want || r.Attempt.Number != 1 {
				t.Errorf("got %s in attempt %d, want %s in the first", r.State, r.Attempt.Number, want)
			}
			if want == run.Failed && r.Fault.Code != fault.DeadlineUnmet {
				t.Errorf("got %v, want DEADLINE_UNMET", r.Fault)
			}
		})
	}
}

// TestReloadWaitsForTheTasks reloads a pool with a task that is served: without a wait nothing
// changes, and otherwise the pool serves the other model when the task has ended.
func TestReloadWaitsForTheTasks(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	_, _, err := h.models.Create(t.Context(), client, "other", catalog.Definition{
		Engines: []platform.EngineKind{platform.EngineMock}, Workloads: []port.Workload{port.WorkloadCompletion},
	}, false)
	h.ok(err)
	h.engines["r1"].FailNext(mockengine.FailStall, 1)
	task := h.ask(3)
	h.engines["r1"].WaitRunning(1)
	reload := func(model string, seconds int) (platform.Pool, error) {
		v, err := h.pools.Reload(t.Context(), client, "pool0", model, seconds, change.Precondition{})
		return v.Pool, err
	}
	before, err := h.store.LoadPool(t.Context(), platform.PoolRef{Tenant: client.Tenant, ID: "pool0"})
	h.ok(err)
	if _, err := reload("other", 0); fault.Of(err) == nil || fault.Of(err).Code != fault.PoolInUse {
		t.Fatalf("got %v with a task, want POOL_IN_USE", err)
	}
	p, err := h.store.LoadPool(t.Context(), platform.PoolRef{Tenant: client.Tenant, ID: "pool0"})
	h.ok(err)
	if p.Draining || p.Engine.Model != "mock" || p.Version != before.Version {
		t.Errorf("got %+v with the model %s, want the pool as before, %+v", p, p.Engine.Model, before)
	}
	var reloaded sync.WaitGroup
	done := make(chan struct{})
	reloaded.Go(func() {
		defer close(done)
		if p, err := reload("other", 20); err != nil || p.Draining || p.Engine.Model != "other" {
			t.Errorf("got %+v (%v), want a pool of the other model", p, err)
		}
	})
	_, err = h.tasks.Cancel(t.Context(), client, task, "")
	h.ok(err)
	h.ended(task)
	for waiting := true; waiting; {
		select {
		case <-done:
			waiting = false
		default:
			h.clock.Advance(time.Second)
			runtime.Gosched()
		}
	}
	reloaded.Wait()
	if _, err := h.tasks.Create(t.Context(), inferences.NewTask{
		Identity: client, Model: "mock", Workload: port.WorkloadCompletion, Request: inference.Request{Prompt: "a"}, MaxTokens: 1,
	}); fault.Of(err) == nil || fault.Of(err).Code != fault.ModelUnknown {
		t.Errorf("got %v for the former model, want MODEL_UNKNOWN", err)
	}
	if r := h.ended(h.ask(2, func(in *inferences.NewTask) { in.Model = "other" })); r.State != run.Completed {
		t.Errorf("got %s of the other model, want Completed", r.State)
	}
}

// TestReloadForgetsFailures reloads a pool whose only replica rests.
func TestReloadForgetsFailures(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	for range 4 {
		h.engines["r1"].FailNext(mockengine.FailReset, 1)
		if r := h.ended(h.ask(3)); r.State != run.Failed {
			t.Fatalf("got %s, want Failed", r.State)
		}
		if r, err := h.pools.Reload(t.Context(), client, "pool0", "", 0, change.Precondition{}); err != nil || r.Pool.Engine.Model != "mock" {
			t.Fatalf("got %+v (%v), want the same model", r.Pool, err)
		}
	}
}

// TestHealthHasTheReplicas reads the health of a pool with replicas that work and one that
// loads its model, and of a pool whose replica rests after failures.
func TestHealthHasTheReplicas(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 3, 1)
	h.engines["r2"].SetLoading(true)
	health := func() map[string]balance.ReplicaHealth {
		found, err := h.pools.Health(t.Context(), client, "pool0")
		h.ok(err)
		by := map[string]balance.ReplicaHealth{}
		for _, r := range found.Replicas {
			by[r.ID] = r
		}
		return by
	}
	if is := health(); len(is) != 3 || !is["r1"].Ready || is["r2"].Ready || !is["r2"].Live || is["r2"].Reason == "" || !is["r3"].Ready {
		t.Errorf("got %+v, want r1 and r3 ready", is)
	}
	resting := newInferring(t, 1, 1)
	for range 3 {
		resting.engines["r1"].FailNext(mockengine.FailReset, 1)
		resting.ended(resting.ask(3))
	}
	var is balance.ReplicaHealth
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 60_000 { // the slot is free shortly after the end of its task
		found, err := resting.pools.Health(t.Context(), client, "pool0")
		h.ok(err)
		if is = found.Replicas[0]; is.Held == 0 {
			break
		}
		<-tick.C
	}
	if !is.Live || is.Ready || is.Reason == "" || is.Version != mockengine.Version || is.Held != 0 {
		t.Errorf("got %+v after failures, want a replica that rests", is)
	}
}

// TestHealthAsksTheReplicasWithoutADispatcher reads the health of a pool in a process without
// its dispatcher: the tasks of all dispatchers count.
func TestHealthAsksTheReplicasWithoutADispatcher(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 2, 1)
	h.engines["r2"].SetLoading(true)
	h.engines["r1"].FailNext(mockengine.FailStall, 1)
	task := h.ask(3)
	h.engines["r1"].WaitRunning(1)
	h.seen(task, inference.NameToken)
	records := runs.NewRecords(h.store, h.clock, slog.New(h.log))
	leave := runs.LeaveToSweep{}
	life := runs.NewLifecycle(records, runs.NoExecutions{}, leave, leave, leave, runs.Config{Pool: "default"})
	with := func(health pools.EngineHealths) *pools.Pools {
		return app.Pools(life, api.PoolDocument, health, series.Discard, runs.Config{})
	}
	if found, err := with(pools.NoEngines{}).Health(t.Context(), client, "pool0"); err != nil || len(found.Replicas) != 0 {
		t.Errorf("got %+v and %v in a process without engines, want no replicas", found.Replicas, err)
	}
	asked := pools.AskEngines(func(_ string, _ platform.EnginePlace, r platform.EngineReplica) (port.Engine, error) {
		return h.engines[r.ID], nil
	}, h.store)
	found, err := with(asked).Health(t.Context(), client, "pool0")
	h.ok(err)
	if is := found.Replicas; len(is) != 2 || !is[0].Ready || is[0].Held != 1 || is[1].Ready || is[1].Held != 0 {
		t.Errorf("got %+v, want r1 ready with a task, and r2 not ready", is)
	}
}

// TestDrainOfATaskIsACancel drains the pool of a task that is served.
func TestDrainOfATaskIsACancel(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	h.engines["r1"].FailNext(mockengine.FailStall, 1)
	task := h.ask(3)
	h.engines["r1"].WaitRunning(1)
	_, err := h.pools.Drain(t.Context(), client, "pool0", new(int), change.Precondition{})
	h.ok(err)
	if r := h.ended(task); r.State != run.Cancelled || r.Cancel == nil || !run.IsDrainReason(r.Cancel.Reason) || r.Fault.Code != fault.Cancelled {
		t.Errorf("got %s with %+v, want a task that the drain has cancelled", r.State, r.Cancel)
	}
	health, err := h.pools.Health(t.Context(), client, "pool0")
	h.ok(err)
	if health.DrainPhase != fleet.DrainDone || health.Left != 0 {
		t.Errorf("got phase %s with %d tasks, want the drain done", health.DrainPhase, health.Left)
	}
}

// TestSessionsUseAllReplicas creates two tasks in each of several sessions whose ids differ in
// the last character. Both tasks of a session use the same replica, and each replica has
// sessions.
func TestSessionsUseAllReplicas(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 2, 4)
	used := map[string]int{}
	for i := range 10 {
		session := "session-000" + string(rune('0'+i))
		turn := func() string {
			return h.ended(h.ask(1, func(n *inferences.NewTask) { n.SessionID = session })).Generation.Replica
		}
		first := turn()
		if second := turn(); second != first {
			t.Errorf("%s: got the replica %s, want %s again", session, second, first)
		}
		used[first]++
	}
	if used["r1"] < 2 || used["r2"] < 2 {
		t.Errorf("got the sessions %v, want at least two for each replica", used)
	}
}

// slowLoad is an engine whose first call of Load waits until answered is closed.
type slowLoad struct {
	port.Engine
	called          *atomic.Bool
	asked, answered chan struct{}
}

func (e slowLoad) Load(ctx context.Context) (port.EngineLoad, error) {
	if !e.called.Swap(true) {
		close(e.asked)
		<-e.answered
	}
	return e.Engine.Load(ctx)
}

// TestKeptRequestIsSeenBesideOthers cancels two tasks of a replica whose engine keeps the
// request of one. The other task, whose request has ended, still has its slot. The kept request
// is counted as a leaked slot.
func TestKeptRequestIsSeenBesideOthers(t *testing.T) {
	t.Parallel()
	loads := slowLoad{called: &atomic.Bool{}, asked: make(chan struct{}), answered: make(chan struct{})}
	h := newInferring(t, 1, 2, func(h *inferring) {
		h.engines["r1"] = mockengine.New(mockengine.Config{Clock: h.clock, Slots: 2, Plan: func(g port.Generation) mockengine.Course {
			c := mockengine.Course{Failure: mockengine.FailStall, After: 1}
			if g.Prompt == "kept" {
				c.Keeps = time.Minute
			}
			return c
		}})
		h.wrap = func(e port.Engine) port.Engine {
			loads.Engine = e
			return loads
		}
	})
	asking := func(prompt string) string {
		task := h.ask(3, func(in *inferences.NewTask) { in.Request.Prompt = prompt })
		h.seen(task, inference.NameToken)
		return task
	}
	cancel := func(task string) {
		_, err := h.tasks.Cancel(t.Context(), client, task, "")
		h.ok(err)
	}
	kept, other := asking("kept"), asking("other")
	cancel(other)
	<-loads.asked
	h.engines["r1"].WaitRunning(1)
	cancel(kept)
	over := h.clock.Now().Add(20 * time.Second) // longer than the timeout of a silent engine and the grace
	for ended := false; !ended; {
		if next, ok := h.clock.Next(); ok && next.Before(over) {
			h.clock.Advance(next.Sub(h.clock.Now()))
		}
		runtime.Gosched()
		r, err := h.store.Find(t.Context(), client.Tenant, kept)
		h.ok(err)
		ended = r.State.Terminal()
	}
	found, err := h.pools.Health(t.Context(), client, "pool0")
	h.ok(err)
	if is := found.Replicas[0]; is.Ready || is.Reason == "" {
		t.Errorf("got %+v, want a replica that rests", is)
	}
	if got := h.tally.Of(series.SlotsLeaked, "pool0"); got != 1 {
		t.Errorf("got %s %v, want 1", series.SlotsLeaked, got)
	}
	h.clock.Advance(time.Minute)
	close(loads.answered)
	h.ended(other)
}
