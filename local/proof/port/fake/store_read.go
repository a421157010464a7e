package fake

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Load implements port.Store.
func (s *Store) Load(ctx context.Context, ref run.Ref) (run.Run, error) {
	return s.one("Load", func() (run.Run, error) { return s.inner.Load(ctx, ref) })
}

// Find implements port.Store.
func (s *Store) Find(ctx context.Context, tenant, taskID string) (run.Run, error) {
	return s.one("Find", func() (run.Run, error) { return s.inner.Find(ctx, tenant, taskID) })
}

// FindByKey implements port.Store.
func (s *Store) FindByKey(ctx context.Context, tenant string, key port.IdempotencyKey) (run.Run, error) {
	return s.one("FindByKey", func() (run.Run, error) { return s.inner.FindByKey(ctx, tenant, key) })
}

func (s *Store) one(method string, read func() (run.Run, error)) (run.Run, error) {
	return ask(s, method, false, func() (run.Run, error) {
		r, err := read()
		if err == nil {
			s.witness.saw(r)
		}
		return r, err
	})
}

// Events implements port.Store.
func (s *Store) Events(ctx context.Context, ref run.Ref, after, limit int) ([]run.Event, error) {
	return ask(s, "Events", false, func() ([]run.Event, error) { return s.inner.Events(ctx, ref, after, limit) })
}

// List implements port.Store.
func (s *Store) List(ctx context.Context, tenant string, page port.Page) (runs []run.Run, next string, err error) {
	runs, err = s.many("List", func() (found []run.Run, err error) {
		found, next, err = s.inner.List(ctx, tenant, page)
		return found, err
	})
	if err != nil {
		return nil, "", err
	}
	return runs, next, nil
}

func (s *Store) many(method string, read func() ([]run.Run, error)) ([]run.Run, error) {
	return ask(s, method, false, func() ([]run.Run, error) {
		runs, err := read()
		for _, r := range runs {
			s.witness.saw(r)
		}
		return runs, err
	})
}

// Queue implements port.Store.
func (s *Store) Queue(ctx context.Context, tenant, pool string, limit int) ([]run.Ref, error) {
	return ask(s, "Queue", false, func() ([]run.Ref, error) { return s.inner.Queue(ctx, tenant, pool, limit) })
}

// QueueState implements port.Store.
func (s *Store) QueueState(ctx context.Context, tenant string, slot platform.Slot) (platform.QueueState, error) {
	return ask(s, "QueueState", false, func() (platform.QueueState, error) { return s.inner.QueueState(ctx, tenant, slot) })
}

// Holders implements port.Store.
func (s *Store) Holders(ctx context.Context, tenant, pool string, limit int) ([]run.Ref, error) {
	return ask(s, "Holders", false, func() ([]run.Ref, error) { return s.inner.Holders(ctx, tenant, pool, limit) })
}

// QueueLength implements port.Store.
func (s *Store) QueueLength(ctx context.Context, tenant, pool string, most int) (int, error) {
	return ask(s, "QueueLength", false, func() (int, error) { return s.inner.QueueLength(ctx, tenant, pool, most) })
}

// QueueAhead implements port.Store.
func (s *Store) QueueAhead(ctx context.Context, tenant string, slot platform.Slot, most int) (int, error) {
	return ask(s, "QueueAhead", false, func() (int, error) { return s.inner.QueueAhead(ctx, tenant, slot, most) })
}

// Pools implements port.Store.
func (s *Store) Pools(ctx context.Context) ([]port.PoolUse, error) {
	return ask(s, "Pools", false, func() ([]port.PoolUse, error) { return s.inner.Pools(ctx) })
}

// Due implements port.Store.
func (s *Store) Due(ctx context.Context, now time.Time, after string, limit int) (due []run.Ref, next string, err error) {
	next, err = ask(s, "Due", false, func() (place string, err error) {
		due, place, err = s.inner.Due(ctx, now, after, limit)
		return place, err
	})
	if err != nil {
		due = nil
	}
	return due, next, err
}

// WithMachine implements port.Store.
func (s *Store) WithMachine(ctx context.Context, after run.Ref, limit int) ([]port.Placement, error) {
	return ask(s, "WithMachine", false, func() ([]port.Placement, error) { return s.inner.WithMachine(ctx, after, limit) })
}

// OutputsDue implements port.Store.
func (s *Store) OutputsDue(ctx context.Context, now time.Time, after string, limit int) (due []run.Ref, next string, err error) {
	next, err = ask(s, "OutputsDue", false, func() (place string, err error) {
		due, place, err = s.inner.OutputsDue(ctx, now, after, limit)
		return place, err
	})
	if err != nil {
		due = nil
	}
	return due, next, err
}

// HeartbeatsDue implements port.Store.
func (s *Store) HeartbeatsDue(ctx context.Context, now time.Time, after string, limit int) (due []run.Ref, next string, err error) {
	next, err = ask(s, "HeartbeatsDue", false, func() (place string, err error) {
		due, place, err = s.inner.HeartbeatsDue(ctx, now, after, limit)
		return place, err
	})
	if err != nil {
		due = nil
	}
	return due, next, err
}

// LastHeartbeat implements port.Store.
func (s *Store) LastHeartbeat(ctx context.Context, ref run.Ref) (run.Heartbeat, error) {
	return ask(s, "LastHeartbeat", false, func() (run.Heartbeat, error) { return s.inner.LastHeartbeat(ctx, ref) })
}

// StartLimiter implements port.Store.
func (s *Store) StartLimiter(ctx context.Context, pool string) (fleet.StartLimiter, error) {
	return ask(s, "StartLimiter", false, func() (fleet.StartLimiter, error) { return s.inner.StartLimiter(ctx, pool) })
}

// Claimed implements port.Store.
func (s *Store) Claimed(ctx context.Context) (bool, error) {
	return ask(s, "Claimed", false, func() (bool, error) { return s.inner.Claimed(ctx) })
}

// Reception implements port.Store.
func (s *Store) Reception(ctx context.Context) (port.Reception, error) {
	return ask(s, "Reception", false, func() (port.Reception, error) { return s.inner.Reception(ctx) })
}
