package pools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// withSlot are the states in which a run can hold a slot of its pool and does not release
// it by itself.
var withSlot = []run.State{
	run.Pending, run.ConditionPending, run.ConditionRunning, run.ActionPending, run.ActionRunning, run.ContainerCreating, run.Running,
}

// Drains ends the runs of drained pools.
type Drains struct {
	common
	runs Runs
}

// NewDrains returns the drains of the pools in a store. known are the caches of the process that
// commits runs.
func NewDrains(runs Runs, store Store, c clock.Clock, log *slog.Logger, known *capacity.Caches, config Config) *Drains {
	return &Drains{common{store, c, log, known, config}, runs}
}

// EndDrained asks the workers of the runs that hold a slot of a draining pool to end, after
// its deadline. It is idempotent. Once no such run remains, the pool is no longer
// due.
func (s *Drains) EndDrained(ctx context.Context, ref platform.PoolRef) error {
	p, err := s.store.LoadPool(ctx, ref)
	if errors.Is(err, port.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read pool %s: %w", ref.ID, err)
	}
	if due := p.DrainDue(); due.IsZero() || due.After(s.now()) {
		return nil
	}
	held, err := s.endHolders(ctx, p)
	if err != nil || held > 0 {
		return err
	}
	// Holders does not list runs that got their slot while the pool had no limit.
	if err := s.eachUnfinished(ctx, p.Tenant, withSlot, func(r run.Run) error {
		if !r.HoldsSlotOf(p) {
			return nil
		}
		held++
		return s.endHolder(ctx, p, r)
	}); err != nil || held > 0 {
		return err
	}
	p.Drained = true
	if err := s.store.SavePool(ctx, p); err != nil && !errors.Is(err, port.ErrConflict) {
		return fmt.Errorf("cannot store pool %s: %w", p.ID, err)
	}
	return nil
}

// endHolders requests the end of the runs with a lease, and returns their number.
func (s *Drains) endHolders(ctx context.Context, p platform.Pool) (held int, err error) {
	holders, err := s.store.Holders(ctx, p.Tenant, p.ID, limit.PoolSlots)
	if err != nil {
		return 0, fmt.Errorf("cannot read the slots of pool %s: %w", p.ID, err)
	}
	for _, ref := range holders {
		r, err := s.store.Load(ctx, ref)
		if errors.Is(err, port.ErrNotFound) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("cannot read run %s: %w", ref.ID, err)
		}
		if err := s.endHolder(ctx, p, r); err != nil {
			return 0, err
		}
	}
	return len(holders), nil
}

// endHolder requests the end of a run with a slot of a drained pool.
func (s *Drains) endHolder(ctx context.Context, p platform.Pool, r run.Run) error {
	if _, err := s.runs.Apply(ctx, r, run.Drained{Pool: p}); err != nil {
		return fmt.Errorf("cannot request the end of run %s: %w", r.ID, err)
	}
	return nil
}

// remaining returns the runs with a slot of a draining pool, at most healthRuns. held has those
// that Holders lists; remaining adds those that got their slot while the pool had no limit.
func (s *Pools) remaining(ctx context.Context, p platform.Pool, held []run.Run) ([]run.Run, error) {
	known := map[string]bool{}
	for _, r := range held {
		known[r.ID] = true
	}
	enough := errors.New("enough runs")
	err := s.eachUnfinished(ctx, p.Tenant, append(slices.Clone(withSlot), run.Terminating), func(r run.Run) error {
		if !r.HoldsSlotOf(p) || known[r.ID] {
			return nil
		}
		if len(held) >= healthRuns {
			return enough
		}
		held = append(held, r)
		return nil
	})
	if err != nil && !errors.Is(err, enough) {
		return nil, err
	}
	return held, nil
}
