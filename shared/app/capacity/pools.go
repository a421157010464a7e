package capacity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// poolAge is how long a process caches the record of a pool, from the start of its read.
const poolAge = time.Second

// Pools reads pools and caches each of them for poolAge. It is safe for concurrent use.
type Pools struct {
	store sizedPools
	clock clock.Clock
	// configured is the default pool while it has no record, without a tenant.
	configured platform.Pool
	known      sync.Map // platform.PoolRef -> knownPool
}

type knownPool struct {
	platform.Pool
	readAt time.Time
}

// NewPools returns the pools in a store. configured is the default pool while it has no
// record, without a tenant.
func NewPools(store sizedPools, c clock.Clock, configured platform.Pool) *Pools {
	return &Pools{store: store, clock: c, configured: configured}
}

// Standard returns the default pool as it is without a record. Its id is the name of the default
// pool of every tenant.
func (p *Pools) Standard() platform.Pool { return p.configured }

// Forget makes the next call read a pool that was changed.
func (p *Pools) Forget(ref platform.PoolRef) { p.known.Delete(ref) }

// Ref identifies a pool by its name; empty is the default one.
func (p *Pools) Ref(tenant, name string) platform.PoolRef {
	return platform.PoolRef{Tenant: tenant, ID: cmp.Or(name, p.configured.ID)}
}

// Read reads the record of a pool, or returns port.ErrNotFound. The default pool always exists.
func (p *Pools) Read(ctx context.Context, ref platform.PoolRef) (platform.Pool, error) {
	at := p.clock.Now() // a slow read may return a record that was replaced meanwhile
	stored, err := p.store.LoadPool(ctx, ref)
	switch {
	case errors.Is(err, port.ErrNotFound) && ref.ID == p.configured.ID:
		stored = p.configured
		stored.Tenant = ref.Tenant
	case errors.Is(err, port.ErrNotFound):
		p.known.Delete(ref)
		return platform.Pool{}, err
	case err != nil:
		return platform.Pool{}, fmt.Errorf("cannot read pool %s: %w", ref.ID, err)
	}
	p.known.Store(ref, knownPool{stored, at})
	return stored, nil
}

// Pool returns a pool, read at most poolAge ago, or port.ErrNotFound. A guest's pool has what its owner
// offers; see Hosted.
func (p *Pools) Pool(ctx context.Context, tenant, name string) (platform.Pool, error) {
	found, err := p.record(ctx, p.Ref(tenant, name))
	if err != nil {
		return found, err
	}
	return p.Hosted(ctx, found)
}

// record returns the record of a pool, read at most poolAge ago, or port.ErrNotFound.
func (p *Pools) record(ctx context.Context, ref platform.PoolRef) (platform.Pool, error) {
	if known, readAt := p.peek(ref); !readAt.IsZero() {
		if age := p.clock.Now().Sub(readAt); age >= 0 && age < poolAge {
			return known, nil
		}
	}
	return p.Read(ctx, ref)
}

// peek returns the record of a pool that was last read, at any time; the time is zero without one.
func (p *Pools) peek(ref platform.PoolRef) (platform.Pool, time.Time) {
	found, ok := p.known.Load(ref)
	if !ok {
		return platform.Pool{}, time.Time{}
	}
	known := found.(knownPool) //nolint:forcetypeassert // the map has no other values
	return known.Pool, known.readAt
}

// ForRun returns the pool of a run. For a deleted pool it returns a draining pool, so that the run
// waits until the pool is created again.
func (p *Pools) ForRun(ctx context.Context, tenant, name string) (platform.Pool, error) {
	found, err := p.Pool(ctx, tenant, name)
	if errors.Is(err, port.ErrNotFound) {
		return platform.Pool{Tenant: tenant, ID: name, Draining: true}, nil
	}
	return found, err
}

// ForNewRun returns the pool that a new run of a kind names. Fault: Unprocessable with the
// field pool for an unknown one, and for one that does not start runs of the kind.
func (p *Pools) ForNewRun(ctx context.Context, tenant, name, kind string) (platform.Pool, error) {
	found, err := p.Pool(ctx, tenant, name)
	if errors.Is(err, port.ErrNotFound) {
		f := fault.New(fault.Unprocessable, "unknown pool %q, want a pool of GET /v1/pools", name)
		f.Field = "pool"
		return platform.Pool{}, f
	}
	if err != nil {
		return platform.Pool{}, err
	}
	if f := platform.CheckKind(found, kind); f != nil {
		return platform.Pool{}, f
	}
	return found, nil
}

// TooManyChanges returns the fault of a change that has lost too many races: Unavailable.
func TooManyChanges() error {
	return fault.New(fault.Unavailable, "too many concurrent changes of the pool; retry")
}
