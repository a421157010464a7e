package runs

import (
	"context"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// PoolDrains ends the runs of drained pools; see pools.Drains.
type PoolDrains interface {
	// EndDrained requests the end of the runs of a draining pool, after its deadline. It is
	// idempotent.
	EndDrained(ctx context.Context, pool platform.PoolRef) error
}

// sweepDrains requests the end of runs in draining pools whose deadline has passed.
func (s *Sweeper) sweepDrains(ctx context.Context) error {
	return s.parts.EachRef(ctx, "drains", func(after string) ([]run.Ref, string, error) {
		due, next, err := s.store.PoolsDue(ctx, s.now(), after, sweepPage)
		if err != nil {
			err = fmt.Errorf("cannot read the draining pools: %w", err)
		}
		refs := make([]run.Ref, len(due))
		for i, ref := range due {
			refs[i] = run.Ref(ref) // EachRef returns tenants and ids only
		}
		return refs, next, err
	}, func(limited context.Context, ref run.Ref) error {
		return s.drains.EndDrained(limited, platform.PoolRef(ref))
	})
}
