package orchestrator_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// TestFailedTaskIsTriedElsewhere asks in a session whose replica is ready and fails all requests,
// then lets the next choice fail as well. Each task goes through the replicas in the same order,
// and completes at the first one that works. The next task goes to the first one again.
func TestFailedTaskIsTriedElsewhere(t *testing.T) {
	t.Parallel()
	fails := map[string]*atomic.Bool{}
	h := newInferring(t, 3, 4, func(h *inferring) {
		for id := range h.engines {
			failing := &atomic.Bool{}
			fails[id] = failing
			h.engines[id] = mockengine.New(mockengine.Config{Clock: h.clock, Slots: 4, Plan: func(port.Generation) (c mockengine.Course) {
				if failing.Load() {
					c.Failure = mockengine.FailStart
				}
				return c
			}})
		}
	})
	var failed []string
	for range 3 {
		r := h.ended(h.ask(2, inSession("talk")))
		if r.State != run.Completed || r.Attempt.Number != len(failed)+1 || !slices.Equal(r.FailedReplicas, failed) {
			t.Fatalf("got %s in attempt %d with %v after failures at %v, want Completed in attempt %d elsewhere",
				r.State, r.Attempt.Number, r.Fault, r.FailedReplicas, len(failed)+1)
		}
		failed = append(failed, r.Generation.Replica)
		fails[r.Generation.Replica].Store(true)
	}
	for _, each := range fails {
		each.Store(false)
	}
	h.restart() // the replicas do not rest
	if r := h.ended(h.ask(2, inSession("talk"))); r.Generation.Replica != failed[0] || r.Attempt.Number != 1 {
		t.Errorf("got the replica %s in attempt %d, want %s as before its failures", r.Generation.Replica, r.Attempt.Number, failed[0])
	}
}
