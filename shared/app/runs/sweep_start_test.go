package runs_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// pagedStore returns expired outputs in pages of two, and three pools. It records the
// places from which outputs are read and the pools that are reconciled.
type pagedStore struct {
	port.Store
	places, pools []string
	reconciling   func()
}

// OutputsDue implements port.Store.
func (p *pagedStore) OutputsDue(ctx context.Context, now time.Time, after string, _ int) ([]run.Ref, string, error) {
	p.places = append(p.places, after)
	return p.Store.OutputsDue(ctx, now, after, 2)
}

// Pools implements port.Store.
func (p *pagedStore) Pools(context.Context) ([]port.PoolUse, error) {
	return []port.PoolUse{{Pool: "first"}, {Pool: "second"}, {Pool: "third"}}, nil
}

// Reconcile implements port.Store.
func (p *pagedStore) Reconcile(_ context.Context, _, pool string) (int, error) {
	p.pools = append(p.pools, pool)
	p.reconciling()
	return 0, nil
}

// deletions records the keys of deletions in order.
type deletions struct {
	port.Outputs
	keys     []string
	deleting func()
}

// Delete implements port.Outputs.
func (d *deletions) Delete(ctx context.Context, on port.Bucket, key string) error {
	d.keys = append(d.keys, key)
	d.deleting()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return d.Outputs.Delete(ctx, on, key)
}

// TestSweepContinuesWhereItEnded ends a sweep in its first deletion. The next one
// starts with the next page, and the one after that with the other run of the first.
func TestSweepContinuesWhereItEnded(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for range 5 {
		h.completed()
	}
	h.clock.to(h.clock.now.Add(25 * time.Hour))
	ctx, end := context.WithCancel(t.Context())
	defer end()
	store := &pagedStore{Store: h.store.Store, reconciling: func() {}}
	bucket := &deletions{Outputs: h.outputs, deleting: end}
	service := h.system(wiring{store: store, outputs: bucket})
	if err := service.Sweep(ctx, 0); !errors.Is(err, context.Canceled) || len(bucket.keys) != 1 {
		t.Fatalf("got %v and deletions of %v, want %v and one deletion", err, bucket.keys, context.Canceled)
	}
	first := bucket.keys[0]
	bucket.keys, bucket.deleting, store.places = nil, func() {}, nil
	h.ok(service.Sweep(t.Context(), 0))
	if len(bucket.keys) != 3 || slices.Contains(bucket.keys, first) || slices.Contains(store.places, "") {
		t.Errorf("got deletions of %v from the places %q in the second sweep, want three from the second page", bucket.keys, store.places)
	}
	bucket.keys = nil
	h.ok(service.Sweep(t.Context(), 0))
	if len(bucket.keys) != 2 || bucket.keys[1] != first {
		t.Errorf("got deletions of %v in the third sweep, want %s as the second", bucket.keys, first)
	}
}

func TestSweepContinuesWithTheNextPool(t *testing.T) {
	t.Parallel()
	h := setup(t)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	store := &pagedStore{Store: h.store.Store, reconciling: end}
	service := h.system(wiring{store: store})
	if err := service.Sweep(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}
	store.reconciling = func() {}
	h.ok(service.Sweep(t.Context(), 0))
	if want := []string{"first", "second", "third", "first"}; !slices.Equal(store.pools, want) {
		t.Errorf("got pools %v, want %v", store.pools, want)
	}
}
