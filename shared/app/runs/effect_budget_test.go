package runs_test

import (
	"context"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestEffectsTakeTwoSecondsOfARequest ends a run while Step Functions is slow. The commit
// completes its token and grants its slot to the next run; effects beyond the two seconds are
// left to the sweep.
func TestEffectsTakeTwoSecondsOfARequest(t *testing.T) {
	t.Parallel()
	for _, slow := range []time.Duration{time.Second, 1500 * time.Millisecond, time.Hour} {
		t.Run(slow.String(), func(t *testing.T) {
			t.Parallel()
			h := setup(t, func(c *runs.Config) { c.MaxMachines = 1 })
			first := h.post()
			queued := []string{h.post(), h.post()}
			h.calls.slow = slow
			for _, task := range queued {
				ctx := runs.WithEffectBudget(t.Context())
				began := h.clock.now
				_, err := h.service.Cancel(ctx, client, task, "")
				h.ok(err)
				_, err = h.service.Cancel(ctx, client, first, "")
				h.ok(err)
				if took := h.clock.now.Sub(began); took < time.Second || took > 2*time.Second {
					t.Errorf("got %s for the effects of a request, want 1s to 2s", took)
				}
			}
			h.calls.slow = 0
			for range 5 {
				h.advance(31 * time.Second)
				h.sweep()
			}
			for _, task := range append(queued, first) {
				h.wantState(task, run.Cancelled)
			}
		})
	}
}

// TestHeartbeatAnswersWithinTwoSeconds forwards a heartbeat while Step Functions does
// not answer. The heartbeat is stored.
func TestHeartbeatAnswersWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	h := liveness(t)
	task := h.post()
	w := h.worker(h.runner.last())
	h.ok(w.started(false))
	h.calls.slow = time.Hour
	began := h.clock.now
	_, err := w.heartbeat()
	h.ok(err)
	if took := h.clock.now.Sub(began); took != 2*time.Second {
		t.Errorf("got an answer after %s, want 2s", took)
	}
	if item, err := h.store.LastHeartbeat(t.Context(), h.record(task).Ref()); err != nil || !item.At.Equal(began) {
		t.Errorf("got the last heartbeat at %s (%v), want %s", item.At, err, began)
	}
}

// TestEffectsOutliveTheirCaller has each caller hang up before the first effect of its
// commit.
//
// Rule 1 of shared/README.md.
func TestEffectsOutliveTheirCaller(t *testing.T) {
	t.Parallel()
	h := setup(t)
	calls := 0
	hangUp := func() context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		h.calls.first = func(string, string) { calls++; cancel() }
		return ctx
	}
	r, _, err := h.service.Export(hangUp(), exportCall())
	h.ok(err)
	h.calls.first = nil
	h.step()
	h.wantState(r.TaskID, run.Running)
	w := h.worker(h.runner.last())
	h.ok(w.started(false))
	bearer := w.bearer()
	_, err = h.service.Cancel(hangUp(), client, r.TaskID, "")
	h.ok(err)
	h.calls.first = nil
	h.step()
	if now := h.record(r.TaskID); calls != 2 || len(now.Execution.Pending) != 0 || bearer.Attempt != 1 {
		t.Errorf("got %d effects and %v pending, want 2 and none", calls, now.Execution.Pending)
	}
}
