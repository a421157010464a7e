package inferences_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestStalledEngineEndsTheTask lets the engine stall in each attempt. An attempt without a
// token is retried. A task that ends at its deadline fails with DeadlineUnmet.
func TestStalledEngineEndsTheTask(t *testing.T) {
	t.Parallel()
	const first, gap = 2 * time.Minute, 30 * time.Second
	const latest = 30 * time.Minute // the clock may be ahead of the dispatcher
	for _, row := range []struct {
		name     string
		tokens   int
		within   time.Duration
		code     fault.Code
		attempts int
		after    time.Duration
	}{
		{"before the first token", 0, time.Hour, fault.DecodeTimeout, 3, 3 * first},
		{"after some tokens", 2, time.Hour, fault.DecodeTimeout, 1, gap},
		{"deadline before the first token", 0, 20 * time.Second, fault.DeadlineUnmet, 1, 20 * time.Second},
		{"deadline after some tokens", 2, 20 * time.Second, fault.DeadlineUnmet, 1, 20 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			h := newInferring(t, 1, 1)
			for range row.attempts {
				h.engines["r1"].FailNext(mockengine.FailStall, row.tokens)
			}
			task := h.ask(5, func(in *inferences.NewTask) { in.Within = row.within })
			h.engines["r1"].WaitRunning(1)
			stop := h.passes(time.Second)
			defer stop()
			events := h.read(task, inference.EventID{})
			last, ok := events[len(events)-1].Data.(inference.Failure)
			if got, want := strings.ReplaceAll(names(events), "m", ""), "s"+strings.Repeat("t", row.tokens)+"e"; got != want || !ok ||
				last.Code != row.code || last.Engine != "mock" || last.TokensOut != row.tokens {
				t.Errorf("got events %q with %+v, want %q and the code %s", got, last, want, row.code)
			}
			r := h.ended(task)
			if r.State != run.Failed || r.Attempt.Number != row.attempts || r.Fault.Code != row.code {
				t.Errorf("got %s in attempt %d with %v, want Failed with %s in attempt %d", r.State, r.Attempt.Number, r.Fault, row.code, row.attempts)
			}
			if took := r.EndedAt.Sub(r.CreatedAt); took < row.after || took > row.after+latest {
				t.Errorf("got the end after %s, want it after %s to %s", took, row.after, row.after+latest)
			}
		})
	}
}

// TestQueuedTaskEndsAtItsDeadline queues a task for a slot that another task holds beyond the
// deadline.
func TestQueuedTaskEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	h.engines["r1"].FailNext(mockengine.FailStall, 0)
	served := h.ask(5)
	h.engines["r1"].WaitRunning(1)
	queued := h.ask(5, func(in *inferences.NewTask) { in.Within = time.Second })
	h.clock.Advance(5 * time.Second)
	r, err := h.store.Find(t.Context(), client.Tenant, queued)
	h.ok(err)
	h.ok(h.sweeper.Advance(t.Context(), r.Ref()))
	events := h.read(queued, inference.EventID{})
	last, ok := events[len(events)-1].Data.(inference.Failure)
	if names(events) != "e" || !ok || last.Code != fault.DeadlineUnmet || last.Engine != "mock" {
		t.Errorf("got events %q with %+v, want an error DEADLINE_UNMET", names(events), last)
	}
	if r := h.ended(queued); r.State != run.Failed {
		t.Errorf("got %s, want Failed", r.State)
	}
	if r, err = h.store.Find(t.Context(), client.Tenant, served); err != nil || r.State != run.Running {
		t.Errorf("got %s (%v) of the task with the slot, want Running", r.State, err)
	}
}

// TestDeadlinesDoNotLetAReplicaRest ends more tasks in a row at their deadlines than the
// failures after which a replica rests. A replica that rested would not begin the next one,
// because the clock does not move.
func TestDeadlinesDoNotLetAReplicaRest(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	for range 5 {
		h.engines["r1"].FailNext(mockengine.FailStall, 1)
		task := h.ask(3, func(in *inferences.NewTask) { in.Within = time.Second })
		h.engines["r1"].WaitRunning(1)
		stop := h.passes(100 * time.Millisecond)
		r := h.ended(task)
		if stop(); r.State != run.Failed || r.Fault.Code != fault.DeadlineUnmet {
			t.Fatalf("got %s with %v, want Failed with DEADLINE_UNMET", r.State, r.Fault)
		}
	}
	if r := h.ended(h.ask(1)); r.State != run.Completed || r.Attempt.Number != 1 {
		t.Errorf("got %s in attempt %d, want Completed in the first", r.State, r.Attempt.Number)
	}
}
