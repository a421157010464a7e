package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// SavePool implements port.Store. After the commit, checkSlot refuses slots that the pool
// does not permit.
func (s *Store) SavePool(ctx context.Context, p platform.Pool, notes ...port.Note) error {
	before := p.Version
	p.Version++
	doc, err := encode(&p)
	if err != nil {
		return fmt.Errorf("cannot encode pool %s: %w", p.ID, err)
	}
	slots := any(p.Limit)
	switch {
	case p.Draining:
		slots = 0
	case p.Limit == 0:
		slots = nil
	}
	return wrap(s.write(ctx, notes, func(tx *Tx) error {
		var changed int64
		var err error
		if before == 0 {
			changed, err = tx.Exec(`INSERT INTO pool_records (tenant, id, version, created_at, slots, drain_due, doc)
				VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
				p.Tenant, p.ID, p.Version, nanos(p.CreatedAt), slots, moment(p.Due()), doc)
		} else {
			changed, err = tx.Exec(`UPDATE pool_records SET version = ?, slots = ?, drain_due = ?, doc = ?
				WHERE tenant = ? AND id = ? AND version = ? AND created_at = ?`,
				p.Version, slots, moment(p.Due()), doc, p.Tenant, p.ID, before, nanos(p.CreatedAt))
		}
		return orConflict(changed, err)
	}), "store pool", p.ID)
}

// orConflict returns ErrConflict if a conditional change has changed no row.
func orConflict(changed int64, err error) error {
	if err == nil && changed == 0 {
		return port.ErrConflict
	}
	return err
}

// LoadPool implements port.Store.
func (s *Store) LoadPool(ctx context.Context, ref platform.PoolRef) (platform.Pool, error) {
	var p platform.Pool
	err := s.document(ctx, &p, "SELECT doc FROM pool_records WHERE tenant = ? AND id = ?", ref.Tenant, ref.ID)
	return p, wrap(err, "read pool", ref.ID)
}

// DeletePool implements port.Store.
func (s *Store) DeletePool(ctx context.Context, p platform.Pool, notes ...port.Note) error {
	return wrap(s.write(ctx, notes, func(tx *Tx) error {
		return orConflict(tx.Exec("DELETE FROM pool_records WHERE tenant = ? AND id = ? AND version = ? AND created_at = ?",
			p.Tenant, p.ID, p.Version, nanos(p.CreatedAt)))
	}), "delete pool", p.ID)
}

// PoolRecords implements port.Store. It returns the same faults as List.
func (s *Store) PoolRecords(ctx context.Context, tenant string, page port.Page) ([]platform.Pool, string, error) {
	pools, next, err := documentPage(ctx, s, "pool_records", tenant, page, func(p platform.Pool) string { return p.ID })
	return pools, next, wrap(err, "list the pools of", tenant)
}

// PoolsDue implements port.Store.
func (s *Store) PoolsDue(ctx context.Context, now time.Time, after string, limit int) ([]platform.PoolRef, string, error) {
	rows, next, err := s.duePage(ctx, "pool_records", "drain_due", now, after, limit, "")
	due := make([]platform.PoolRef, len(rows))
	for i, row := range rows {
		due[i] = platform.PoolRef(row)
	}
	return due, next, wrap(err, "read", "the pools that are to be drained")
}
