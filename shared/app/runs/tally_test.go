package runs_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestHeartbeatsAreCounted counts the heartbeats of two attempts. The call started, its
// repetition and refused heartbeats do not count. Counting needs no further writes.
func TestHeartbeatsAreCounted(t *testing.T) {
	t.Parallel()
	h := liveness(t)
	task := h.post()
	w := h.worker(h.runner.last())
	h.ok(w.started(false))
	h.ok(w.started(false))
	w.sendHeartbeats(2*time.Minute, 30*time.Second)
	if item, err := h.store.LastHeartbeat(t.Context(), h.record(task).Ref()); err != nil || item.Received != 4 {
		t.Errorf("got %d heartbeats of the running attempt (%v), want 4", item.Received, err)
	}
	for h.record(task).Attempt.Number == 1 {
		h.advanceReachable(10 * time.Second)
	}
	if _, err := w.heartbeat(); err == nil {
		t.Error("got a heartbeat of an attempt that ended, want a refusal")
	}
	if got := h.record(task).Metrics(h.clock.now).Heartbeats; got != 4 {
		t.Errorf("got %d heartbeats of the first attempt, want 4", got)
	}
	h.advance(10 * time.Second)
	h.wantState(task, run.Running)
	m := h.runner.last()
	w = h.worker(m)
	h.ok(w.started(false))
	w.sendHeartbeats(time.Minute, 30*time.Second)
	h.ok(h.report(m, success()))
	h.advance(10 * time.Second)
	r := h.wantState(task, run.Completed)
	if got := r.Metrics(h.clock.now).Heartbeats; got != 6 {
		t.Errorf("got %d heartbeats of the run, want 6", got)
	}
}
