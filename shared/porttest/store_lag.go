package porttest

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/run"
)

// settled waits before each call that may miss the commits of the last moment.
type settled struct {
	orchestrator.Store
	settle func()
}

// List is orchestrator.Store.
func (s settled) List(ctx context.Context, tenant string, page orchestrator.Page) ([]run.Run, string, error) {
	s.settle()
	return s.Store.List(ctx, tenant, page)
}

// Pools is orchestrator.Store.
func (s settled) Pools(ctx context.Context) ([]orchestrator.PoolUse, error) {
	s.settle()
	return s.Store.Pools(ctx)
}

// Mend is orchestrator.Store.
func (s settled) Mend(ctx context.Context, tenant, pool string) (int, error) {
	s.settle()
	return s.Store.Mend(ctx, tenant, pool)
}

// Due is orchestrator.Store.
func (s settled) Due(ctx context.Context, now time.Time, limit int) ([]run.Ref, error) {
	s.settle()
	return s.Store.Due(ctx, now, limit)
}

// WithMachine is orchestrator.Store.
func (s settled) WithMachine(ctx context.Context, after run.Ref, limit int) ([]orchestrator.Placement, error) {
	s.settle()
	return s.Store.WithMachine(ctx, after, limit)
}

// OutputsDue is orchestrator.Store.
func (s settled) OutputsDue(ctx context.Context, now time.Time, limit int) ([]run.Ref, error) {
	s.settle()
	return s.Store.OutputsDue(ctx, now, limit)
}

// Purge is orchestrator.Store.
func (s settled) Purge(ctx context.Context, now time.Time, limit int) (int, error) {
	s.settle()
	return s.Store.Purge(ctx, now, limit)
}
