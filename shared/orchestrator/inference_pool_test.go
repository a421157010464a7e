package orchestrator_test

import (
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/inference"
	"github.com/sortie-dev/sortie/shared/run"
)

// TestTaskGoesToTheLeastUsedPool fills two pools of a model, of which the second has twice as
// many slots.
func TestTaskGoesToTheLeastUsedPool(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 8)
	place := run.EnginePlace{Kind: run.EngineMock, Model: "mock", Slots: 16, Replicas: []run.EngineReplica{{ID: "r1"}}}
	h.ok(h.store.SavePool(t.Context(), run.Pool{Tenant: client.Tenant, ID: "pool1", Limit: 4, QueueLimit: 10, Engine: &place}))
	first, err := h.store.LoadPool(t.Context(), run.PoolRef{Tenant: client.Tenant, ID: "pool0"})
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
