package answers

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// faultyStore is a store with injected faults. Calls made under a mutex of a use case take no
// time, because a goroutine that waits for a mutex stops the clock of the bubble.
type faultyStore struct {
	port.Store
	p *process
}

func ofRun(call string, ref run.Ref) string { return call + " " + ref.ID }

// Create implements port.Store.
func (s faultyStore) Create(ctx context.Context, first port.Write, key *port.IdempotencyKey, with ...port.Write) (*run.Run, error) {
	return during(ctx, s.p, "create", true, func() (*run.Run, error) { return s.Store.Create(ctx, first, key, with...) })
}

// Load implements port.Store.
func (s faultyStore) Load(ctx context.Context, ref run.Ref) (run.Run, error) {
	return during(ctx, s.p, ofRun("load", ref), false, func() (run.Run, error) { return s.Store.Load(ctx, ref) })
}

// Find implements port.Store.
func (s faultyStore) Find(ctx context.Context, tenant, id string) (run.Run, error) {
	return during(ctx, s.p, "find "+id, false, func() (run.Run, error) { return s.Store.Find(ctx, tenant, id) })
}

// FindByKey implements port.Store.
func (s faultyStore) FindByKey(ctx context.Context, tenant string, key port.IdempotencyKey) (run.Run, error) {
	return during(ctx, s.p, "find by "+key.Key, false, func() (run.Run, error) { return s.Store.FindByKey(ctx, tenant, key) })
}

// Commit implements port.Store.
func (s faultyStore) Commit(ctx context.Context, writes ...port.Write) error {
	what := "commit"
	for _, each := range writes {
		what += fmt.Sprintf(" %s %d", each.Run.ID, each.Run.Version)
	}
	return done(ctx, s.p, what, func() error { return s.Store.Commit(ctx, writes...) })
}

// Heartbeat implements port.Store.
func (s faultyStore) Heartbeat(ctx context.Context, ref run.Ref, b run.Heartbeat) (run.Heartbeat, error) {
	return during(ctx, s.p, ofRun("heartbeat", ref), true, func() (run.Heartbeat, error) { return s.Store.Heartbeat(ctx, ref, b) })
}

// LastHeartbeat implements port.Store.
func (s faultyStore) LastHeartbeat(ctx context.Context, ref run.Ref) (run.Heartbeat, error) {
	return during(ctx, s.p, ofRun("last heartbeat", ref), false, func() (run.Heartbeat, error) { return s.Store.LastHeartbeat(ctx, ref) })
}

// HeartbeatsDue implements port.Store.
func (s faultyStore) HeartbeatsDue(ctx context.Context, now time.Time, after string, limit int) (refs []run.Ref, next string, err error) {
	refs, err = during(ctx, s.p, "heartbeats due", false, func() (found []run.Ref, err error) {
		found, next, err = s.Store.HeartbeatsDue(ctx, now, after, limit)
		return found, err
	})
	return refs, next, err
}

// Due implements port.Store.
func (s faultyStore) Due(ctx context.Context, now time.Time, after string, limit int) (due []run.Ref, next string, err error) {
	due, err = during(ctx, s.p, "due", false, func() (found []run.Ref, err error) {
		found, next, err = s.Store.Due(ctx, now, after, limit)
		return found, err
	})
	return due, next, err
}

// Reconcile implements port.Store.
func (s faultyStore) Reconcile(ctx context.Context, tenant, pool string) (int, error) {
	return during(ctx, s.p, "reconcile", true, func() (int, error) { return s.Store.Reconcile(ctx, tenant, pool) })
}

// RecordReception implements port.Store.
func (s faultyStore) RecordReception(ctx context.Context, before, after port.Reception) error {
	return done(ctx, s.p, "record reception", func() error { return s.Store.RecordReception(ctx, before, after) })
}

// Purge implements port.Store.
func (s faultyStore) Purge(ctx context.Context, now time.Time, limit int) (int, error) {
	return during(ctx, s.p, "purge", true, func() (int, error) { return s.Store.Purge(ctx, now, limit) })
}

// Queue implements port.Store.
func (s faultyStore) Queue(ctx context.Context, tenant, pool string, limit int) ([]run.Ref, error) {
	return atOnce(s.p, "queue", func() ([]run.Ref, error) { return s.Store.Queue(ctx, tenant, pool, limit) })
}

// QueueLength implements port.Store.
func (s faultyStore) QueueLength(ctx context.Context, tenant, pool string, most int) (int, error) {
	return atOnce(s.p, "queue length", func() (int, error) { return s.Store.QueueLength(ctx, tenant, pool, most) })
}

// Holders implements port.Store.
func (s faultyStore) Holders(ctx context.Context, tenant, pool string, limit int) ([]run.Ref, error) {
	return atOnce(s.p, "holders", func() ([]run.Ref, error) { return s.Store.Holders(ctx, tenant, pool, limit) })
}

// SavePool implements port.PoolStore.
func (s faultyStore) SavePool(ctx context.Context, p platform.Pool, notes ...port.Note) error {
	return done(ctx, s.p, "save pool", func() error { return s.Store.SavePool(ctx, p, notes...) })
}

// LoadPool implements port.PoolStore.
func (s faultyStore) LoadPool(ctx context.Context, ref platform.PoolRef) (platform.Pool, error) {
	return during(ctx, s.p, "load pool", false, func() (platform.Pool, error) { return s.Store.LoadPool(ctx, ref) })
}

// Account implements port.AccountStore.
func (s faultyStore) Account(ctx context.Context, tenant, scope string) (budget.Account, error) {
	return during(ctx, s.p, "account "+scope, false, func() (budget.Account, error) { return s.Store.Account(ctx, tenant, scope) })
}

// PutLimit implements port.AccountStore.
func (s faultyStore) PutLimit(
	ctx context.Context, tenant, scope string, limit budget.Limit, version int64, at time.Time, notes ...port.Note,
) (budget.Account, error) {
	return during(ctx, s.p, "put limit", true, func() (budget.Account, error) {
		return s.Store.PutLimit(ctx, tenant, scope, limit, version, at, notes...)
	})
}

// CloseAccount implements port.AccountStore.
func (s faultyStore) CloseAccount(ctx context.Context, tenant, scope string, at time.Time) error {
	return done(ctx, s.p, "close "+scope, func() error { return s.Store.CloseAccount(ctx, tenant, scope, at) })
}

// LoadResource implements port.ResourceStore.
func (s faultyStore) LoadResource(ctx context.Context, ref port.ResourceRef) (port.Resource, error) {
	return during(ctx, s.p, "load "+ref.Kind, false, func() (port.Resource, error) { return s.Store.LoadResource(ctx, ref) })
}

// WriteResources implements port.ResourceStore.
func (s faultyStore) WriteResources(ctx context.Context, save, remove []port.Resource, notes ...port.Note) error {
	return done(ctx, s.p, "write resources", func() error { return s.Store.WriteResources(ctx, save, remove, notes...) })
}

// atOnce is like during for a read that takes no time.
func atOnce[T any](p *process, what string, do func() (T, error)) (result T, err error) {
	draw := p.w.roll(p.name + " " + what)
	if p.maybeKill(draw, what) || p.w.fate(draw) != fake.Applied {
		return result, errKilled
	}
	return do()
}
