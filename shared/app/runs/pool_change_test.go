package runs_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// put sets the limit of a pool and runs everything that is due.
func (h *fixture) put(id string, limit int) {
	h.Helper()
	_, _, err := h.service.Pools.Put(h.Context(), client, id, pools.Definition{Limit: limit}, change.Precondition{})
	h.ok(err)
	h.step()
}

func (h *fixture) drain(id string, seconds *int) {
	h.Helper()
	_, err := h.service.Pools.Drain(h.Context(), client, id, seconds, change.Precondition{})
	h.ok(err)
	h.step()
}

func (h *fixture) resume(id string) {
	h.Helper()
	_, err := h.service.Pools.Resume(h.Context(), client, id, change.Precondition{})
	h.ok(err)
	h.step()
}

// running returns the number of tasks that are Running.
func (h *fixture) running(tasks []string) (n int) {
	h.Helper()
	for _, task := range tasks {
		if h.record(task).State == run.Running {
			n++
		}
	}
	return n
}

func (h *fixture) wantRunning(tasks []string, want int, when string) {
	h.Helper()
	if got := h.running(tasks); got != want {
		h.Fatalf("%s: got %d running, want %d", when, got, want)
	}
}

// once requests a run in a pool.
func (h *fixture) once(pool string) error {
	_, _, err := h.service.RunOnce(h.Context(), jobs.OnceRequest{
		Identity: client, Document: fmt.Appendf(nil, `{"image": "worker", "pool": %q}`, pool),
	})
	return err
}

// posts accepts n exports a second apart.
func (h *fixture) posts(n int) (tasks []string) {
	h.Helper()
	for range n {
		h.clock.to(h.clock.now.Add(time.Second))
		tasks = append(tasks, h.post())
	}
	return tasks
}

// succeed ends a running task.
func (h *fixture) succeed(task string) {
	h.Helper()
	h.ok(h.report(h.machineOf(task), success()))
	h.step()
	h.wantState(task, run.Completed)
}

func TestRaisedLimitStartsQueuedRuns(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine)
	tasks := h.posts(5)
	h.wantRunning(tasks, 1, "limit 1")
	h.put("default", 3)
	h.wantRunning(tasks, 3, "limit 3")
	h.put("default", 0)
	h.wantRunning(tasks, 5, "no limit")
}

func TestLoweredLimitEndsNoRun(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *runs.Config) { c.MaxMachines = 3 })
	tasks := h.posts(5)
	h.put("default", 2)
	h.wantRunning(tasks, 3, "lowered to 2")
	h.put("default", 1)
	for i, want := range []int{2, 1, 1, 1, 0} { // after the end of each run, in order
		h.succeed(tasks[i])
		h.sweep()
		h.wantRunning(tasks, want, fmt.Sprintf("%d runs ended", i+1))
	}
}

func TestDrainingPoolAdmitsNothing(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{"limit 2": 2, "no limit": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, func(c *runs.Config) { c.MaxMachines = limit })
			tasks := h.posts(2)
			h.drain("default", nil)
			tasks = append(tasks, h.posts(2)...)
			h.wantRunning(tasks, 2, "draining")
			h.succeed(tasks[0])
			h.advance(time.Minute)
			h.sweep()
			h.wantRunning(tasks, 1, "a lease ended")
			for _, task := range tasks[2:] {
				if r := h.wantState(task, run.Pending); !r.Queued() {
					t.Errorf("got slot %+v, want it queued", r.Slot)
				}
			}
			h.resume("default")
			h.wantRunning(tasks, map[int]int{2: 2, 0: 3}[limit], "resumed")
		})
	}
}

// TestSweepFillsAfterAChangeOfAPool ends the process between the commit of a change and the
// grants.
func TestSweepFillsAfterAChangeOfAPool(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(platform.Pool, time.Time) platform.Pool{
		"raised limit": func(p platform.Pool, now time.Time) platform.Pool {
			return p.Resized(3, 0, "me", now).Resume("me", now)
		},
		"resume": func(p platform.Pool, now time.Time) platform.Pool { return p.Resume("me", now) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, func(c *runs.Config) { c.MaxMachines = 2 })
			h.drain("default", nil)
			tasks := h.posts(3)
			h.wantRunning(tasks, 0, "draining")
			p, err := h.store.LoadPool(t.Context(), platform.PoolRef{Tenant: client.Tenant, ID: "default"})
			h.ok(err)
			p = change(p, h.clock.now)
			h.ok(h.store.SavePool(t.Context(), p))
			h.service = h.system(wiring{}) // another process
			h.clock.to(h.clock.now.Add(time.Second))
			h.sweep()
			h.wantRunning(tasks, p.Limit, "after a sweep")
		})
	}
}

// TestDrainDuringAnAdmission drains the pool between the decision of an admission and its
// commit: the run is queued.
func TestDrainDuringAnAdmission(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.accept()
	other := &racingStore{first: func() { h.drain("default", nil) }}
	slow := h.raceWith(other)
	route, err := slow.Admit(t.Context(), h.input(task, run.StepPending))
	h.ok(err)
	if r := h.wantState(task, run.Pending); !r.Queued() || route.Next != run.StepQueued {
		t.Errorf("got slot %+v and the step %s, want it queued", r.Slot, route.Next)
	}
}

// TestDrainDuringARelease drains the pool between the decision of a grant and its commit:
// the release is committed without the grant.
func TestDrainDuringARelease(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine)
	tasks := h.queue(2)
	h.store.before = func() { h.drain("default", nil) }
	h.succeed(tasks[0])
	if r := h.wantState(tasks[1], run.Pending); !r.Queued() {
		t.Errorf("got slot %+v, want it queued", r.Slot)
	}
	h.resume("default")
	h.wantState(tasks[1], run.Running)
}

func TestPoolIsChangedByOneOfTwoClients(t *testing.T) {
	t.Parallel()
	h := setup(t)
	svc := h.service.Pools
	before, err := svc.Pool(t.Context(), client, "default")
	h.ok(err)
	required := change.Precondition{Present: true, Match: func(tag string) bool { return tag == pools.Tag(before.Pool) }}
	_, created, err := svc.Put(t.Context(), client, "default", pools.Definition{Limit: 7}, required)
	if err != nil || created {
		t.Fatalf("got created %t, %v, want a change of the default pool", created, err)
	}
	if _, err := svc.Drain(t.Context(), client, "default", nil, required); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("got %v, want PreconditionFailed", err)
	}
	if after, err := svc.Pool(t.Context(), client, "default"); err != nil || after.Draining || after.Limit != 7 {
		t.Errorf("got %+v, %v, want only the first change", after, err)
	}
}

func TestPoolWithRunsIsNotDeleted(t *testing.T) {
	t.Parallel()
	h := setup(t)
	pools := h.service.Pools
	h.put("reports", 1)
	remove := func(id string) error { return pools.Delete(t.Context(), client, id, change.Precondition{}) }
	inUse := func(when string) {
		t.Helper()
		if err := remove("reports"); !fault.Is(err, fault.PoolInUse) {
			t.Errorf("%s: got %v, want PoolInUse", when, err)
		}
	}
	scheduled := h.startRun(func(r *run.Run) { r.Slot.Pool, r.ScheduledAt = "reports", h.clock.now.Add(time.Hour) })
	inUse("a scheduled run")
	h.cancel(scheduled)
	h.ok(h.once("reports"))
	inUse("an accepted run")
	h.step()
	inUse("a run with a slot")
	h.drain("reports", new(int))
	h.advance(time.Minute)
	inUse("a run that waits for the end of the drain")
	waiting, _, err := h.store.List(t.Context(), client.Tenant, port.Page{State: run.Pending, Limit: 10})
	h.ok(err)
	for _, r := range waiting {
		h.cancel(r.TaskID)
	}
	h.ok(remove("reports"))
	if err := remove("reports"); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v, want NotFound", err)
	}
	h.put("default", 3)
	if err := remove("default"); !fault.Is(err, fault.PoolInUse) {
		t.Errorf("the default pool: got %v, want PoolInUse", err)
	}
}

// TestRunOfADeletedPoolWaits creates a run while its pool is being deleted.
func TestRunOfADeletedPoolWaits(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.startRun(func(r *run.Run) { r.Slot.Pool = "reports" })
	h.step()
	if r := h.wantState(task, run.Pending); !r.Queued() {
		t.Fatalf("got slot %+v, want it queued", r.Slot)
	}
	h.sweep()
	h.wantState(task, run.Pending)
	h.put("reports", 1)
	h.wantState(task, run.Running)
}

func TestFiringOfAnUnknownPoolIsSkipped(t *testing.T) {
	t.Parallel()
	h := setup(t)
	ref := h.createJob("nightly", "schedule: \"@every 10m\"\npool: reports\n")
	h.wake(ref)
	h.wantRuns(ref, "10m0s schedule Completed unknown_pool x1")
}

// TestDrainOfABusyPool drains while runs are admitted concurrently: no run gets a slot
// after the commit of the drain.
func TestDrainOfABusyPool(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *runs.Config) { c.MaxMachines = 50 })
	var tasks []string
	for range 40 {
		tasks = append(tasks, h.accept())
	}
	inputs := make([]runs.StepInput, len(tasks))
	for i, task := range tasks {
		inputs[i] = h.input(task, run.StepPending)
	}
	service := h.system(wiring{store: h.store.Store})
	done := make(chan error, len(tasks))
	for i := range tasks {
		go func() {
			_, err := service.Admit(context.Background(), inputs[i])
			done <- err
		}()
	}
	h.ok(<-done)
	_, err := service.Pools.Drain(t.Context(), client, "default", nil, change.Precondition{})
	h.ok(err)
	before, err := h.store.Holders(t.Context(), client.Tenant, "default", 100)
	h.ok(err)
	for range len(tasks) - 1 {
		h.ok(<-done)
	}
	after, err := h.store.Holders(t.Context(), client.Tenant, "default", 100)
	h.ok(err)
	if len(after) != len(before) {
		t.Errorf("got %d slots, want the %d of the drain's commit", len(after), len(before))
	}
	queue, err := h.store.Queue(t.Context(), client.Tenant, "default", 100)
	h.ok(err)
	if len(queue)+len(after) != len(tasks) {
		t.Errorf("got %d held and %d queued, want %d in total", len(after), len(queue), len(tasks))
	}
}

func TestListOfPoolsHasTheDefaultOne(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine)
	h.put("alpha", 2)
	h.put("zeta", 0)
	h.queue(2)
	views, err := h.service.Pools.Pools(t.Context(), client)
	h.ok(err)
	var got []string
	for _, v := range views {
		got = append(got, fmt.Sprint(v.ID, " ", v.Limit, " ", v.Held, " ", v.Queued))
	}
	if want := []string{"alpha 2 0 0", "default 1 1 1", "zeta 0 0 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
