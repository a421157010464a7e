package runs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// wantEvicted checks that runs wait for another attempt, and that the drain counted as no
// attempt.
func (h *fixture) wantEvicted(tasks ...string) {
	h.Helper()
	for _, task := range tasks {
		r := h.wantState(task, run.Pending)
		if !r.Queued() || r.Cancel != nil || r.Attempt.Number != 1 || r.Spent.Attempts+r.Spent.Starts+r.Spent.Stops > 0 || r.Fault == nil || r.Fault.Code != fault.PoolDrained {
			h.Errorf("got %s in slot %+v after attempt %d with %v, spent %+v, want it queued after a drained attempt", task, r.Slot, r.Attempt.Number, r.Fault, r.Spent)
		}
	}
}

func TestDrainEndsAttemptsAfterItsDeadline(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{"limit 2": 2, "no limit": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, func(c *runs.Config) { c.MaxMachines = limit })
			tasks := h.posts(2)
			seconds := 300
			deadline := 5 * time.Minute
			h.drain("default", &seconds)
			queued := h.posts(1)[0]
			h.advance(deadline - 10*time.Second)
			h.sweep()
			h.wantRunning(tasks, 2, "before the deadline")
			if got := h.health(); got.DrainPhase != fleet.DrainWaiting || got.Left != 2 {
				t.Errorf("got phase %s with %d runs, want it waiting for two", got.DrainPhase, got.Left)
			}
			h.advance(10 * time.Second)
			h.sweep()
			for _, task := range tasks {
				r := h.record(task)
				if end := r.EndRequest(); r.Cancel != nil || end == nil || !strings.Contains(end.Reason, "pool default drains") || end.By != client.Subject {
					t.Errorf("got end request %+v, want one that names the pool and its operator", end)
				}
			}
			h.advance(time.Minute)
			h.sweep()
			h.advance(time.Minute)
			h.wantEvicted(tasks...)
			h.sweep()
			if r := h.wantState(queued, run.Pending); !r.Queued() || r.Cancel != nil {
				t.Errorf("got %+v, want it queued", r.Slot)
			}
			if due, _, err := h.store.PoolsDue(t.Context(), h.clock.now, "", 10); err != nil || len(due) != 0 {
				t.Errorf("got %v due, %v, want the drain done", due, err)
			}
			if got := h.health(); got.DrainPhase != fleet.DrainDone || got.Left != 0 || got.Queued != 3 {
				t.Errorf("got phase %s with %d runs and %d queued, want it drained with three queued", got.DrainPhase, got.Left, got.Queued)
			}
			h.resume("default")
			h.wantState(queued, run.Running) // it was first in the queue
			h.wantRunning(tasks, map[int]int{2: 1, 0: 2}[limit], "resumed")
			if got := h.health().DrainPhase; got != "" {
				t.Errorf("got phase %s of an open pool, want none", got)
			}
		})
	}
}

// TestDrainWithoutTimeEndsAttemptsAtOnce drains with a deadline of zero seconds. The workers
// are asked to end without a sweep.
func TestDrainWithoutTimeEndsAttemptsAtOnce(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.post()
	h.drain("default", new(int))
	if h.record(task).EndRequest() == nil {
		t.Error("got no end request, want one with the drain")
	}
}

// TestWorkerOfADrainedPoolCanSucceed reports success after the worker was asked to end.
func TestWorkerOfADrainedPoolCanSucceed(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runner.ignoresSIGTERM = true
	task := h.post()
	h.drain("default", new(int))
	h.succeed(task)
}

// TestCancelDuringADrainEndsTheRun cancels a run whose worker was asked to end.
func TestCancelDuringADrainEndsTheRun(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runner.ignoresSIGTERM = true
	task := h.post()
	h.drain("default", new(int))
	h.cancel(task)
	h.runner.last().exit(0)
	h.sweep()
	h.wantState(task, run.Cancelled)
}

// TestDrainSurvivesCrashes ends the process at each write of a drain, before the write is
// applied and after it. Another process continues.
func TestDrainSurvivesCrashes(t *testing.T) {
	t.Parallel()
	for _, applied := range []bool{false, true} {
		t.Run(fmt.Sprint("applied ", applied), func(t *testing.T) {
			t.Parallel()
			at := 0
			for drainWithACrash(t, at, applied) {
				at++
			}
			if at < 8 {
				t.Errorf("got %d writes, want one for each step", at)
			}
		})
	}
}

// drainWithACrash drains a pool and ends the process at a write. crashed is false if there were
// fewer writes.
func drainWithACrash(t *testing.T, at int, applied bool) (crashed bool) {
	t.Helper()
	h := setup(t, func(c *runs.Config) { c.MaxMachines = 2 })
	tasks := h.posts(2)
	writes := 0
	h.store.crash = func(commit func() error) error {
		n := writes
		writes++
		if crashed || n < at {
			if crashed {
				return fault.New(fault.Unavailable, "the process has ended")
			}
			return commit()
		}
		crashed = true
		if applied {
			if err := commit(); err != nil {
				return err
			}
		}
		return fault.New(fault.Unavailable, "the process ends")
	}
	restart := func() {
		if crashed {
			h.store.crash = nil
			h.service = h.system(wiring{})
		}
	}
	_, err := h.service.Pools.Drain(t.Context(), client, "default", new(60), change.Precondition{})
	if restart(); err != nil {
		h.drain("default", new(60))
	}
	for range 5 {
		h.advance(time.Minute)
		err := h.service.Sweep(t.Context(), 0)
		if err != nil && !crashed {
			t.Fatal(err)
		}
		h.step()
		restart()
	}
	when := fmt.Sprintf("crash at write %d, applied %t", at, applied)
	h.wantEvicted(tasks...)
	if got := h.health(); got.DrainPhase != fleet.DrainDone {
		t.Errorf("%s: got phase %s, want the drain done", when, got.DrainPhase)
	}
	h.store.crash = nil
	h.resume("default")
	h.wantRunning(tasks, 2, when)
	live := 0
	for _, m := range h.runner.launched {
		if m.Phase != port.MachineGone {
			live++
		}
	}
	if live != 2 {
		t.Errorf("%s: got %d live machines, want one for each run", when, live)
	}
	return crashed
}
