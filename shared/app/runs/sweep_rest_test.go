package runs_test

import (
	"context"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/artifact"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
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
	h := setup(t, func(c *runs.Config) { c.ExpiryPause = 4*time.Minute + 30*time.Second })
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

// TestNewestRunsOutliveTheirRetention sweeps after the retention of four runs of a job that keeps
// two. Then one is pinned, and the job is deleted.
func TestNewestRunsOutliveTheirRetention(t *testing.T) {
	t.Parallel()
	h := setup(t)
	ref := h.createJob("nightly", "retention: {outputs: 24h, logs: 1h, newest: 2}\n")
	h.config.Policy.Newest, h.config.Policy.OutputRetention, h.config.Policy.LogRetention = 2, 24*time.Hour, time.Hour
	h.config.Policy.KeepDownloaded, h.config.Policy.Retry.MaxAttempts = true, 1
	for i, code := range []int{0, 0, 1, 0, 0} {
		h.runJob(string(rune('a'+i)), spec.Constraints{}, spec.Actions{})
		h.exit(string(rune('a'+i)), code)
	}
	want := func(after time.Duration, held string) {
		t.Helper()
		h.clock.to(h.clock.now.Add(after))
		for range 2 { // a sweep is idempotent
			h.ok(h.service.Sweep(t.Context(), 0))
		}
		got := ""
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			if r, err := h.store.Load(t.Context(), run.Ref{Tenant: client.Tenant, ID: id}); err == nil && r.Held {
				got += id
			}
		}
		if got != held {
			t.Errorf("after %s: got held runs %q, want %q", after, got, held)
		}
	}
	want(time.Minute, "abcde")
	want(2*time.Hour, "cde")
	want(48*time.Hour, "cde")
	_, err := h.service.Runs.Pin(t.Context(), client, "d", true)
	h.ok(err)
	want(24*365*time.Hour, "cde")
	j, err := h.store.LoadJob(t.Context(), ref.Tenant, ref.ID)
	h.ok(err)
	h.ok(h.store.DeleteJob(t.Context(), j))
	want(25*time.Hour, "d")
	_, err = h.service.Runs.Pin(t.Context(), client, "d", false)
	h.ok(err)
	want(24*time.Hour+time.Second, "")
}
