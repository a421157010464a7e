package runs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// transitions returns how many states the run's first execution has entered.
func (h *fixture) transitions(task string) int {
	h.Helper()
	return h.execution(task, 1).Transitions
}

// startedWithin advances the clock, with a sweep per minute, until every run has a
// machine, at most for d.
func (h *fixture) startedWithin(d time.Duration, tasks []string) {
	h.Helper()
	for until := h.clock.now.Add(d); h.clock.now.Before(until); h.advance(time.Minute) {
		h.sweep()
		if !slices.ContainsFunc(tasks, func(task string) bool { return !h.record(task).Attempt.Machine.Known() }) {
			return
		}
	}
	h.Fatalf("got runs without a machine after %s, want none", d)
}

// TestThrottledStartsCostNoTransitions accepts many runs at once on a platform that
// permits one start per second. Each waits in the queue and is started in order of
// its creation, with at most five more transitions than a run that does not wait.
func TestThrottledStartsCostNoTransitions(t *testing.T) {
	t.Parallel()
	const undisturbed, extra = 3, 5 // Pending, ContainerCreating, Running
	for name, slots := range map[string]int{"pool without a limit": 0, "pool with a limit": 1000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, func(c *runs.Config) {
				c.MaxMachines, c.Policy.TimeLimit, c.Policy.QueueTimeout = slots, 10*time.Hour, 10*time.Hour
				c.Policy.HeartbeatInterval, c.Policy.HeartbeatTimeout = time.Hour, 3*time.Hour
			})
			h.limitStarts(3)
			var tasks []string
			for range 150 {
				h.clock.to(h.clock.now.Add(time.Millisecond))
				tasks = append(tasks, h.accept())
			}
			h.step()
			h.startedWithin(5*time.Minute, tasks)
			var order []string
			for _, m := range h.runner.launched {
				order = append(order, m.spec.Env["TASK_ID"])
			}
			for i, task := range tasks {
				r := h.wantState(task, run.Running)
				if got := h.transitions(task); got > undisturbed+extra {
					t.Errorf("run %d: got %d transitions, want at most %d", i, got, undisturbed+extra)
				}
				if left := h.envelope(h.runner.find(r.Attempt.Machine)).Deadline.Sub(r.Attempt.StartedAt); left < r.Policy.TimeLimit {
					t.Errorf("run %d: got %s from the start to the deadline, want at least %s", i, left, r.Policy.TimeLimit)
				}
			}
			if len(order) != len(tasks) {
				t.Errorf("got %d machines for %d runs", len(order), len(tasks))
			}
			// The starts of the first burst are concurrent.
			if burst := 3; !slices.Equal(tasks[burst:], order[burst:]) {
				t.Errorf("got starts in the order %v, want the order of the creation %v", order, tasks)
			}
		})
	}
}

// TestThrottledRunReturnsItsSlot throttles the start of the only run of a pool. It holds no
// slot and costs no transitions while it waits. When the platform permits its start, it gets a
// slot and its whole start limit, although only the sweep can grant it.
func TestThrottledRunReturnsItsSlot(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine)
	h.limitStarts(0)
	task := h.post()
	h.advance(10 * time.Minute) // the chain of grants has ended
	r := h.wantState(task, run.ContainerCreating)
	waited := h.transitions(task)
	pools, err := h.store.Pools(t.Context())
	h.ok(err)
	view, err := h.service.Task(t.Context(), client, task)
	h.ok(err)
	if view.QueuePosition != 0 {
		t.Errorf("got queue position %d, want 0", view.QueuePosition)
	}
	if !r.Queued() || len(pools) != 1 || pools[0].Held != 0 || pools[0].Queued != 1 {
		t.Errorf("got slot %+v in %+v, want a queued run without a slot", r.Slot, pools)
	}
	h.advance(10 * time.Minute)
	if got := h.transitions(task); got != waited {
		t.Errorf("got %d transitions after waiting, want %d", got, waited)
	}
	h.limitStarts(3)
	h.startedWithin(10*time.Minute, []string{task})
	r = h.wantState(task, run.Running)
	if r.Attempt.Number != 1 || r.Spent != (run.Spent{}) || r.Slot.State != platform.SlotHeld {
		t.Errorf("got attempt %d, spent %+v and slot %s, want the first attempt with a slot", r.Attempt.Number, r.Spent, r.Slot.State)
	}
	if want := r.Attempt.StartAt.Add(r.Policy.StartTimeout); !r.Attempt.StartBy.Equal(want) {
		t.Errorf("got start limit %s, want %s", r.Attempt.StartBy, want)
	}
}

// TestPlatformThatKeepsThrottlingIsAskedRarely throttles every start for six hours.
// The tries become rare, whatever delay the client asks for, and continue.
func TestPlatformThatKeepsThrottlingIsAskedRarely(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *runs.Config) {
		c.MaxMachines, c.MaxEvents, c.Policy.QueueTimeout = 30, 300, 24*time.Hour
		c.Policy.Retry.InitialDelay, c.Policy.Retry.MaxDelay = time.Second, time.Second
	})
	h.limitStarts(0)
	var tasks []string
	for range 20 {
		tasks = append(tasks, h.post())
	}
	for range 6 * 60 {
		h.advance(time.Minute)
		h.sweep()
	}
	if h.runner.refused > 120 {
		t.Errorf("got %d create calls in six hours, want at most 120", h.runner.refused)
	}
	h.limitStarts(3)
	h.startedWithin(15*time.Minute, tasks)
}

// TestNewRunDoesNotOvertakeThrottledRuns accepts a run while others wait for the
// platform, after the platform could start it.
//
// Rule 6 of shared/README.md.
func TestNewRunDoesNotOvertakeThrottledRuns(t *testing.T) {
	t.Parallel()
	for name, slots := range map[string]int{"pool without a limit": 0, "pool with a limit": 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, func(c *runs.Config) { c.MaxMachines = slots })
			h.limitStarts(0)
			early := h.post()
			h.advance(5 * time.Minute)
			h.limitStarts(3)
			late := h.post()
			h.startedWithin(10*time.Minute, []string{early, late})
			if first := h.runner.launched[0].spec.Env["TASK_ID"]; first != early {
				t.Errorf("got the later run started first, want the one that waits")
			}
		})
	}
}

// TestThrottledRunReachesItsQueueTimeout ends a run whose start is never permitted.
func TestThrottledRunReachesItsQueueTimeout(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.limitStarts(0)
	task := h.post()
	h.advance(h.config.Policy.QueueTimeout + 2*time.Minute)
	if r := h.wantState(task, run.Failed); r.Fault.Code != fault.QueueTimeout || r.Attempt.Number != 1 {
		t.Errorf("got %v in attempt %d, want %s in attempt 1", r.Fault, r.Attempt.Number, fault.QueueTimeout)
	}
	if pools, err := h.store.Pools(t.Context()); err != nil || len(pools) != 0 {
		t.Errorf("got pools %+v (%v), want none in use", pools, err)
	}
}

// TestMachineOfAThrottledStartIsNotNeeded shows a machine that appears after its
// create call was throttled. Its worker is refused, and the sweep destroys it.
//
// Rule 5 of shared/README.md.
func TestMachineOfAThrottledStartIsNotNeeded(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runner.during = func(*machine) error {
		h.limitStarts(0)
		return fault.New(fault.Throttled, "too many machines")
	}
	task := h.post()
	h.advance(5 * time.Minute)
	ghost := h.runner.last()
	ghost.Phase = port.MachineRunning
	if err := h.worker(ghost).started(false); !fault.Is(err, fault.TaskExpired) {
		t.Errorf("got %v for the start of its worker, want %s", err, fault.TaskExpired)
	}
	h.sweep()
	r := h.wantState(task, run.ContainerCreating)
	if ghost.Phase != port.MachineGone || !r.Queued() || r.Attempt.Machine.Known() {
		t.Errorf("got the machine in %s and the run on %q, want it gone and the run queued", ghost.Phase, r.Attempt.Machine.ID)
	}
}

// TestUnansweredStartKeepsItsSlot throttles a start whose earlier create call had no
// answer: a machine may exist, so the run keeps its slot and its start limit.
func TestUnansweredStartKeepsItsSlot(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runner.during = func(m *machine) error {
		m.hidden = true
		h.limitStarts(0)
		return fault.New(fault.Unavailable, "no answer")
	}
	r, err := h.exportWith(contract.Policy{StartTimeoutSeconds: new(300)})
	h.ok(err)
	h.step()
	h.advance(4 * time.Minute)
	if r = h.wantState(r.TaskID, run.ContainerCreating); r.Queued() || r.Slot.State != platform.SlotHeld {
		t.Fatalf("got slot %+v, want it held", r.Slot)
	}
	ghost := h.runner.last()
	ghost.hidden, ghost.Phase = false, port.MachineRunning
	h.ok(h.worker(ghost).started(false))
	h.wantState(r.TaskID, run.Running)
}
