package runs_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

func oneMachine(c *runs.Config) { c.MaxMachines = 1 }

// queue posts n runs, of which the first holds the only slot.
func (h *fixture) queue(n int) (tasks []string) {
	h.Helper()
	for i := range n {
		h.clock.to(h.clock.now.Add(time.Second))
		tasks = append(tasks, h.post())
		if i > 0 {
			h.wantState(tasks[i], run.Pending)
		}
	}
	h.wantState(tasks[0], run.Running)
	return tasks
}

// runTogether reports whether one commit wrote all the runs.
func (h *fixture) runTogether(tasks ...string) bool {
	return slices.ContainsFunc(h.store.commits, func(refs []run.Ref) bool {
		for _, task := range tasks {
			if !slices.Contains(refs, h.record(task).Ref()) {
				return false
			}
		}
		return true
	})
}

// TestReleaseGrantsToTheFirstQueuedRun grants in the commit of the release, in
// order of arrival.
//
// Rule 6 of shared/README.md.
func TestReleaseGrantsToTheFirstQueuedRun(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine)
	tasks := h.queue(3)
	for i, task := range tasks {
		h.wantState(task, run.Running)
		h.ok(h.report(h.runner.last(), success()))
		h.step()
		h.wantState(task, run.Completed)
		if i+1 < len(tasks) && !h.runTogether(task, tasks[i+1]) {
			t.Errorf("got two commits for the end of run %d and the next grant, want one", i)
		}
	}
	if len(h.runner.launched) != 3 {
		t.Errorf("got %d machines launched, want 3", len(h.runner.launched))
	}
}

// TestReleaseAfterALostGrantStillGrants refuses the slot to the first queued run once,
// like a concurrent commit that took the slot and has released it again.
//
// Rule 6 of shared/README.md.
func TestReleaseAfterALostGrantStillGrants(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine)
	tasks := h.queue(2)
	h.store.full = h.config.Pool
	h.ok(h.report(h.runner.last(), success()))
	h.step()
	h.wantState(tasks[0], run.Completed)
	h.wantState(tasks[1], run.Running)
}

// TestGrantSkipsACancelledRun cancels the first queued run before the release, and
// while the release is being committed.
//
// Rule 6 of shared/README.md.
func TestGrantSkipsACancelledRun(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before the release", "during its commit"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			h := setup(t, oneMachine)
			tasks := h.queue(3)
			cancel := func() {
				_, err := h.service.Cancel(h.Context(), client, tasks[1], "")
				h.ok(err)
			}
			if when == "before the release" {
				cancel()
			} else {
				h.store.before = cancel
			}
			h.ok(h.report(h.runner.last(), success()))
			h.step()
			h.wantState(tasks[0], run.Completed)
			h.wantState(tasks[1], run.Cancelled)
			h.wantState(tasks[2], run.Running)
			if h.runTogether(tasks[0], tasks[1]) || !h.runTogether(tasks[0], tasks[2]) {
				t.Error("got the slot of the first run elsewhere, want it granted to the third in the same commit")
			}
			h.wantExecutionEnded(tasks[1])
		})
	}
}

// wantExecutionEnded fails the test if the execution of an ended run still runs.
func (h *fixture) wantExecutionEnded(task string) {
	h.Helper()
	if x := h.execution(task, 1); x.Status == port.ExecutionRunning {
		h.Errorf("got a running execution of %s, want it ended", task)
	}
}

// TestRetryIsQueuedAgain releases the slot between two attempts.
//
// Rule 6 of shared/README.md.
func TestRetryIsQueuedAgain(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine)
	tasks := h.queue(2)
	h.runner.last().exit(1)
	h.sweep()
	h.wantState(tasks[0], run.Retrying)
	h.wantState(tasks[1], run.Running)
	h.advance(3 * time.Second)
	if r := h.wantState(tasks[0], run.Pending); r.Slot.State != platform.SlotQueued || r.Attempt.Number != 1 {
		t.Errorf("got slot %+v in attempt %d, want it queued in attempt 1", r.Slot, r.Attempt.Number)
	}
	h.ok(h.report(h.runner.last(), success()))
	h.step()
	h.wantState(tasks[0], run.Running)
}

// TestQueueTimeout removes a run from the queue after the queue timeout.
//
// Rule 6 of shared/README.md.
func TestQueueTimeout(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine, func(c *runs.Config) {
		c.Policy.QueueTimeout, c.Policy.TimeLimit = time.Minute, time.Hour
	})
	tasks := h.queue(2)
	h.advance(time.Minute + 2*time.Second)
	if r := h.wantState(tasks[1], run.Failed); r.Fault.Code != fault.QueueTimeout {
		t.Errorf("got fault %+v, want %s", r.Fault, fault.QueueTimeout)
	}
	if queue, err := h.store.Queue(h.Context(), client.Tenant, "default", 10); err != nil || len(queue) != 0 {
		t.Errorf("got queue %v (%v), want it empty", queue, err)
	}
	h.wantExecutionEnded(tasks[1])
}

// TestIdempotencyKeyIsAcceptedOnce repeats a request whose answer was lost.
//
// Rule 10 of shared/README.md.
func TestIdempotencyKeyIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	h := setup(t)
	call := exportCall()
	call.IdempotencyKey = "k1"
	first, existing, err := h.service.Export(h.Context(), call)
	if err != nil || existing {
		t.Fatalf("got existing %t and error %v, want a new run", existing, err)
	}
	second, existing, err := h.service.Export(h.Context(), call)
	if err != nil || !existing || second.TaskID != first.TaskID {
		t.Errorf("got run %s, existing %t, error %v; want existing run %s", second.TaskID, existing, err, first.TaskID)
	}
	call.Request.BatchID = new("other")
	if _, _, err = h.service.Export(h.Context(), call); !fault.Is(err, fault.IdempotencyMismatch) {
		t.Errorf("got %v for another request under the same key, want %s", err, fault.IdempotencyMismatch)
	}
	h.step()
	if len(h.runner.launched) != 1 {
		t.Errorf("got %d machines launched, want 1", len(h.runner.launched))
	}
}

// TestSlotIsReleasedWhileTheObjectStoreIsAway ends a worker while the object store
// fails: the next run starts at once, and the first one ends with its output when
// the store is back.
//
// Rules 6 and 14 of shared/README.md.
func TestSlotIsReleasedWhileTheObjectStoreIsAway(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(*outputs){
		"reads":     func(o *outputs) { o.away = true },
		"deletions": func(o *outputs) { o.lost = 1 << 30 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, oneMachine)
			tasks := h.queue(2)
			first := h.runner.last()
			away(h.outputs)
			h.ok(h.report(first, h.upload(first, "<out/>", 6)))
			h.step()
			if h.wantState(tasks[0], run.Terminating); first.Phase != port.MachineGone {
				t.Errorf("got the machine in phase %s, want %s", first.Phase, port.MachineGone)
			}
			h.wantState(tasks[1], run.Running)
			h.outputs.away, h.outputs.lost = false, 0
			h.advance(2 * time.Minute)
			h.wantState(tasks[0], run.Completed)
			if text, err := h.download(tasks[0]); err != nil || text != "<out/>" {
				t.Errorf("got output %q, %v, want <out/>", text, err)
			}
			if n := strings.Count(h.eventsOf(tasks[0]), "completed"); n != 1 {
				t.Errorf("got %d terminal events, want 1", n)
			}
		})
	}
}
