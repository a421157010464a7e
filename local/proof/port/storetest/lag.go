package storetest

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// settled calls settle before each call that is eventually consistent.
type settled struct {
	port.Store
	settle func()
}

// List implements port.Store.
func (s settled) List(ctx context.Context, tenant string, page port.Page) ([]run.Run, string, error) {
	s.settle()
	return s.Store.List(ctx, tenant, page)
}

// Pools implements port.Store.
func (s settled) Pools(ctx context.Context) ([]port.PoolUse, error) {
	s.settle()
	return s.Store.Pools(ctx)
}

// Reconcile implements port.Store.
func (s settled) Reconcile(ctx context.Context, tenant, pool string) (int, error) {
	s.settle()
	return s.Store.Reconcile(ctx, tenant, pool)
}

// Due implements port.Store.
func (s settled) Due(ctx context.Context, now time.Time, after string, limit int) ([]run.Ref, string, error) {
	s.settle()
	return s.Store.Due(ctx, now, after, limit)
}

// HeartbeatsDue implements port.Store.
func (s settled) HeartbeatsDue(ctx context.Context, now time.Time, after string, limit int) ([]run.Ref, string, error) {
	s.settle()
	return s.Store.HeartbeatsDue(ctx, now, after, limit)
}

// WithMachine implements port.Store.
func (s settled) WithMachine(ctx context.Context, after run.Ref, limit int) ([]port.Placement, error) {
	s.settle()
	return s.Store.WithMachine(ctx, after, limit)
}

// OutputsDue implements port.Store.
func (s settled) OutputsDue(ctx context.Context, now time.Time, after string, limit int) ([]run.Ref, string, error) {
	s.settle()
	return s.Store.OutputsDue(ctx, now, after, limit)
}

// Purge implements port.Store.
func (s settled) Purge(ctx context.Context, now time.Time, limit int) (int, error) {
	s.settle()
	return s.Store.Purge(ctx, now, limit)
}

// Jobs implements port.Store.
func (s settled) Jobs(ctx context.Context, tenant string, page port.Page) ([]job.Job, string, error) {
	s.settle()
	return s.Store.Jobs(ctx, tenant, page)
}

// JobsDue implements port.Store.
func (s settled) JobsDue(ctx context.Context, now time.Time, after string, limit int) ([]job.Ref, string, error) {
	s.settle()
	return s.Store.JobsDue(ctx, now, after, limit)
}

// QueueLength implements port.Store.
func (s settled) QueueLength(ctx context.Context, tenant, pool string, most int) (int, error) {
	s.settle()
	return s.Store.QueueLength(ctx, tenant, pool, most)
}

// QueueAhead implements port.Store.
func (s settled) QueueAhead(ctx context.Context, tenant string, slot platform.Slot, most int) (int, error) {
	s.settle()
	return s.Store.QueueAhead(ctx, tenant, slot, most)
}

// PoolRecords implements port.Store.
func (s settled) PoolRecords(ctx context.Context, tenant string, page port.Page) ([]platform.Pool, string, error) {
	s.settle()
	return s.Store.PoolRecords(ctx, tenant, page)
}

// PoolsDue implements port.Store.
func (s settled) PoolsDue(ctx context.Context, now time.Time, after string, limit int) ([]platform.PoolRef, string, error) {
	s.settle()
	return s.Store.PoolsDue(ctx, now, after, limit)
}
