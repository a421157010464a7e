package orchestrator_test

import (
	"context"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/artifact"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// countingStore counts the reads of expired outputs and records.
type countingStore struct {
	port.Store
	outputs, purges int
}

// OutputsDue implements port.Store.
func (c *countingStore) OutputsDue(ctx context.Context, now time.Time, after string, limit int) ([]run.Ref, string, error) {
	c.outputs++
	return c.Store.OutputsDue(ctx, now, after, limit)
}

// Purge implements port.Store.
func (c *countingStore) Purge(ctx context.Context, now time.Time, limit int) (int, error) {
	c.purges++
	return c.Store.Purge(ctx, now, limit)
}

// TestIdleSweepReadsExpiryEveryFifthTime checks that every fifth sweep reads what has expired,
// and so does each sweep after one that found something.
func TestIdleSweepReadsExpiryEveryFifthTime(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *orchestrator.Config) { c.ExpiryPause = 4*time.Minute + 30*time.Second })
	store := &countingStore{Store: h.store}
	service := h.system(wiring{store: store})
	sweeps := func(n int) {
		for range n {
			h.ok(service.Sweep(t.Context(), 0))
			h.clock.to(h.clock.now.Add(time.Minute))
		}
	}
	sweeps(15)
	if store.outputs != 3 || store.purges != 3 {
		t.Errorf("got %d and %d reads in 15 idle sweeps, want 3", store.outputs, store.purges)
	}
	task := h.completed()
	r := h.record(task)
	h.clock.to(r.BytesDue().Add(time.Minute))
	sweeps(1)
	if after := h.record(task); after.BytesLeft() || !r.BytesLeft() {
		t.Errorf("got bytes left before %t and after the first sweep past %s %t, want true and false", r.BytesLeft(), r.BytesDue(), after.BytesLeft())
	}
	before := store.outputs
	sweeps(1)
	if store.outputs == before {
		t.Error("got no read after a sweep that found something")
	}
}

func TestSweepRemovesExpiredArtifacts(t *testing.T) {
	t.Parallel()
	h := setup(t)
	a, _, err := h.service.Artifacts.Create(t.Context(), client.Tenant, "test", artifact.Draft{Kind: "note", Content: []byte(`"x"`)})
	h.ok(err)
	for _, left := range []int{1, 0} {
		h.ok(h.service.Sweep(t.Context(), 0))
		if got := len(h.outputs.buckets[port.Accepted]); got != left {
			t.Errorf("got %d objects at %s, want %d of an artifact that expires at %s", got, h.clock.now, left, a.ExpiresAt)
		}
		h.clock.to(a.ExpiresAt)
	}
}
