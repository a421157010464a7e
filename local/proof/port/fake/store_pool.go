package fake

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// SavePool implements port.Store.
func (s *Store) SavePool(ctx context.Context, p platform.Pool, notes ...port.Note) error {
	s.witness.savesPool(p)
	return s.call(context.Background(), "SavePool", "", true, func() error { return s.inner.SavePool(ctx, p, notes...) })
}

// LoadPool implements port.Store.
func (s *Store) LoadPool(ctx context.Context, ref platform.PoolRef) (platform.Pool, error) {
	return ask(s, "LoadPool", false, func() (platform.Pool, error) { return s.inner.LoadPool(ctx, ref) })
}

// DeletePool implements port.Store.
func (s *Store) DeletePool(ctx context.Context, p platform.Pool, notes ...port.Note) error {
	return s.call(context.Background(), "DeletePool", "", true, func() error { return s.inner.DeletePool(ctx, p, notes...) })
}

// PoolRecords implements port.Store.
func (s *Store) PoolRecords(ctx context.Context, tenant string, page port.Page) (pools []platform.Pool, next string, err error) {
	next, err = ask(s, "PoolRecords", false, func() (place string, err error) {
		pools, place, err = s.inner.PoolRecords(ctx, tenant, page)
		return place, err
	})
	if err != nil {
		pools = nil
	}
	return pools, next, err
}

// PoolsDue implements port.Store.
func (s *Store) PoolsDue(ctx context.Context, now time.Time, after string, limit int) (due []platform.PoolRef, next string, err error) {
	next, err = ask(s, "PoolsDue", false, func() (place string, err error) {
		due, place, err = s.inner.PoolsDue(ctx, now, after, limit)
		return place, err
	})
	if err != nil {
		due = nil
	}
	return due, next, err
}

// AddNotes implements port.Store.
func (s *Store) AddNotes(ctx context.Context, notes ...port.Note) error {
	return s.call(context.Background(), "AddNotes", "", true, func() error { return s.inner.AddNotes(ctx, notes...) })
}

// WarmMachines implements port.Store.
func (s *Store) WarmMachines(ctx context.Context, ref platform.PoolRef) ([]platform.WarmMachine, error) {
	return ask(s, "WarmMachines", false, func() ([]platform.WarmMachine, error) { return s.inner.WarmMachines(ctx, ref) })
}

// SaveWarm implements port.Store.
func (s *Store) SaveWarm(ctx context.Context, w platform.WarmMachine) error {
	return s.call(context.Background(), "SaveWarm", "", true, func() error { return s.inner.SaveWarm(ctx, w) })
}

// DeleteWarm implements port.Store.
func (s *Store) DeleteWarm(ctx context.Context, w platform.WarmMachine) error {
	return s.call(context.Background(), "DeleteWarm", "", true, func() error { return s.inner.DeleteWarm(ctx, w) })
}
