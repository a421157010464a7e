package runs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// measure runs the job "nightly" some times, for 50 s each.
func (h *fixture) measure() {
	h.Helper()
	for i := range 8 {
		id := h.runJob(fmt.Sprint("measured", i), spec.Constraints{MaxConcurrentRuns: 1}, spec.Actions{})
		h.advance(50 * time.Second)
		h.exit(id, 0)
		h.step()
		h.wantState(id, run.Completed)
	}
	h.advance(2 * time.Minute) // the measured runs are read again
}

// predicted returns the p50 of the prediction of a run.
func (h *fixture) predicted(id string) time.Duration {
	h.Helper()
	p := h.record(id).Prediction
	if p == nil || p.Measured == 0 || p.P90 < p.P50 || !p.Started.IsZero() {
		h.Fatalf("got prediction %+v of %s, want one of measured runs", p, id)
	}
	return time.Duration(p.P50) * time.Millisecond
}

// TestPredictionCountsTheRunsThatStartBefore queues runs of several priorities and keys.
func TestPredictionCountsTheRunsThatStartBefore(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine)
	h.measure()
	for range 5 {
		h.post() // of one class without a key
	}
	h.advance(2 * time.Second)
	ref := h.createJob("other", "")
	for _, row := range []struct {
		priority spec.Priority
		ahead    int
	}{{spec.PriorityBatch, 4}, {spec.PriorityInteractive, 0}, {spec.PriorityInteractive, 1}, {"", 6}} {
		got := h.predicted(h.requested(ref, spec.Override{Priority: row.priority}))
		if want := time.Duration(row.ahead+1) * 50 * time.Second; (got - want).Abs() > 25*time.Second {
			t.Errorf("priority %q: got a start in %s, want about %s", row.priority, got, want)
		}
		h.advance(2 * time.Second)
	}
}

func TestWaitForAJobIsPredicted(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		action spec.Action
		want   time.Duration
	}{
		"wait":        {spec.Action{Type: spec.ActionWait}, 40 * time.Second},
		"retry_later": {spec.Action{Type: spec.ActionRetryLater, Delay: 10 * time.Minute}, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, manyMachines)
			h.measure()
			limit := spec.Constraints{MaxConcurrentRuns: 1}
			first := h.runJob("first", limit, spec.Actions{})
			h.advance(10 * time.Second)
			waits := h.runJob("waits", limit, onViolation(row.action))
			if got := h.predicted(waits); (got - row.want).Abs() > 5*time.Second {
				t.Errorf("got a start in %s, want about %s", got, row.want)
			}
			h.advance(40 * time.Second)
			h.exit(first, 0)
			h.advance(row.action.Delay)
			h.step()
			h.wantState(waits, run.Running)
			if late, _, ok := h.record(waits).Prediction.Error(); !ok || late.Abs() > time.Minute {
				t.Errorf("got an error of %s, %t, want that of the prediction of the wait", late, ok)
			}
		})
	}
}

func TestQueuedForItsKeyAtCreationIsPredicted(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *runs.Config) { c.MaxMachines = 10 })
	ref := h.createJob("nightly", "concurrencyKey: customer-7\nconcurrency: {limit: 1, queueLimit: 5}\n")
	for range 8 {
		id := h.requested(ref, spec.Override{})
		h.advance(50 * time.Second)
		h.ends(id)
	}
	h.advance(2 * time.Minute)
	h.requested(ref, spec.Override{})
	for i, want := range []time.Duration{50 * time.Second, 100 * time.Second} {
		r, _, err := h.service.Jobs.RunJob(h.Context(), jobs.RunRequest{Identity: client, JobID: ref.ID})
		h.ok(err)
		if got := h.predicted(r.ID); (got - want).Abs() > 15*time.Second {
			t.Errorf("run %d: got a start in %s, want about %s", i, got, want)
		}
	}
}
