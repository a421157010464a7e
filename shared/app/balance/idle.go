package balance

import (
	"context"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TakeIdle takes a slot of a ready replica for shadow traffic, without waiting for one; nil without
// such a replica. yield is called, perhaps repeatedly, when a task waits for a slot of the pool: the
// request must then end at once, and the slot be released. yield must not block.
func (s *Replicas) TakeIdle(ctx context.Context, r run.Run, lookup func(context.Context) (platform.Pool, error), yield func()) (*Lease, error) {
	pool, err := lookup(ctx)
	if err != nil {
		return nil, err
	}
	if err := serves(pool, r); err != nil {
		return nil, err
	}
	lease, _, _, err := s.takeAny(ctx, r, pool, lookup)
	if lease == nil || err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shadows[lease] = shadow{pool.Ref(), yield}
	return lease, nil
}

// shadow is a slot that TakeIdle has taken.
type shadow struct {
	pool  platform.PoolRef
	yield func()
}

// yieldShadows lets the shadow traffic of a pool release its slots.
func (s *Replicas) yieldShadows(pool platform.Pool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, each := range s.shadows {
		if each.pool == pool.Ref() {
			each.yield()
		}
	}
}
