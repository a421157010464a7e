package inferences_test

import (
	"context"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// seeds is an engine that records the seeds of its requests, -1 for a request without one.
type seeds struct {
	port.Engine

	mu  *sync.Mutex
	all *[]int64
}

// Generate implements port.Engine.
func (s seeds) Generate(ctx context.Context, g port.Generation, each func(port.Piece) error) (port.GenerationEnd, error) {
	s.mu.Lock()
	seed := int64(-1)
	if g.Seed != nil {
		seed = *g.Seed
	}
	*s.all = append(*s.all, seed)
	s.mu.Unlock()
	return s.Engine.Generate(ctx, g, each)
}

// TestSeedReachesTheEngine sends requests with and without a seed, before and after the pool is
// made deterministic.
func TestSeedReachesTheEngine(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var all []int64
	h := newInferring(t, 1, 1, func(h *inferring) { h.wrap = func(e port.Engine) port.Engine { return seeds{e, &mu, &all} } })
	seven := int64(7)
	ask := func() (with, without string) {
		with = h.ended(h.ask(5, func(n *inferences.NewTask) { n.Request.Seed = &seven })).Generation.Trace
		return with, h.ended(h.ask(5)).Generation.Trace
	}
	ask()
	pool, err := h.store.LoadPool(t.Context(), platform.PoolRef{Tenant: client.Tenant, ID: "pool0"})
	h.ok(err)
	pool.Engine.Deterministic = true
	h.ok(h.store.SavePool(t.Context(), pool))
	h.restart() // the pool is read again
	with, without := ask()
	if againWith, againWithout := ask(); with == "" || with != againWith || without != againWithout || with == without {
		t.Errorf("got the transcripts %s and %s, then %s and %s, want the same ones again", with, without, againWith, againWithout)
	}
	if got, want := len(all), 6; got != want {
		t.Fatalf("got %v, want %d requests", all, want)
	}
	for i, want := range []int64{7, -1, 7, 0, 7, 0} {
		if all[i] != want {
			t.Errorf("request %d: got seed %d, want %d", i, all[i], want)
		}
	}
}
