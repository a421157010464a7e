package sqlite

import (
	"context"
	"errors"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Queue implements port.Store.
func (s *Store) Queue(ctx context.Context, tenant, pool string, limit int) ([]run.Ref, error) {
	refs, err := s.refs(ctx, `SELECT tenant, id FROM (
			SELECT tenant, id, place FROM runs WHERE tenant = ?1 || '' AND pool = ?2 || '' AND place IS NOT NULL
			UNION ALL
			SELECT tenant, id, place FROM side_slots WHERE tenant = ?1 || '' AND pool = ?2 || '' AND place IS NOT NULL
			ORDER BY place, id LIMIT 0 + ?3)`,
		tenant, pool, max(limit, 0))
	return refs, wrap(err, "read the queue of pool", pool)
}

// Holders implements port.Store.
func (s *Store) Holders(ctx context.Context, tenant, pool string, limit int) ([]run.Ref, error) {
	refs, err := s.refs(ctx, `SELECT tenant, id FROM runs WHERE tenant = ?1 || '' AND pool = ?2 || '' AND place IS NULL
		UNION ALL
		SELECT tenant, id FROM side_slots WHERE tenant = ?1 || '' AND pool = ?2 || '' AND place IS NULL LIMIT 0 + ?3`,
		tenant, pool, max(limit, 0))
	return refs, wrap(err, "read the slots of pool", pool)
}

// QueueLength implements port.Store. Commits keep the number up to date.
func (s *Store) QueueLength(ctx context.Context, tenant, pool string, most int) (length int, err error) {
	err = s.db.Read(ctx, func(tx *Tx) error {
		err := tx.QueryRow("SELECT min(queued, ?) FROM pools WHERE tenant = ? AND pool = ?", most, tenant, pool).Scan(&length)
		if errors.Is(err, ErrNoRow) {
			return nil
		}
		return err
	})
	return length, wrap(err, "count the queue of pool", pool)
}

// QueueAhead implements port.Store.
func (s *Store) QueueAhead(ctx context.Context, tenant string, slot platform.Slot, most int) (ahead int, err error) {
	err = s.db.Read(ctx, func(tx *Tx) error {
		return tx.QueryRow(`SELECT count(*) FROM (
			SELECT 1 FROM runs WHERE tenant = ?1 AND pool = ?2 AND place < ?3
			UNION ALL
			SELECT 1 FROM side_slots WHERE tenant = ?1 AND pool = ?2 AND place < ?3 LIMIT 0 + ?4)`,
			tenant, slot.Pool, slot.Order(), most).Scan(&ahead)
	})
	return ahead, wrap(err, "count the queue of pool", slot.Pool)
}

// Pools implements port.Store. It orders the pools by tenant and pool.
func (s *Store) Pools(ctx context.Context) (pools []port.PoolUse, err error) {
	err = s.db.Read(ctx, func(tx *Tx) error {
		pools = nil
		rows := tx.Query("SELECT tenant, pool, held, queued FROM pools WHERE held <> 0 OR queued <> 0 ORDER BY tenant, pool")
		for rows.Next() {
			var p port.PoolUse
			if err := rows.Scan(&p.Tenant, &p.Pool, &p.Held, &p.Queued); err != nil {
				return err
			}
			pools = append(pools, p)
		}
		return rows.Err()
	})
	return pools, wrap(err, "read", "the pools")
}

// Reconcile implements port.Store. The records themselves have slots and queue places. Only the
// row that counts them can differ and is corrected. Reconcile also removes past turns.
func (s *Store) Reconcile(ctx context.Context, tenant, pool string) (int, error) {
	// Compare without the writer first: a long queue takes a while to count.
	var equal bool
	err := s.db.Read(ctx, func(tx *Tx) error {
		counted, stored, err := poolUse(tx, tenant, pool)
		if err != nil {
			return err
		}
		var past int
		err = tx.QueryRow("SELECT count(*) "+pastTurns, tenant, pool).Scan(&past)
		equal = counted == stored && past == 0
		return err
	})
	if err != nil || equal {
		return 0, wrap(err, "count pool", pool)
	}
	changed := 0
	err = s.db.Write(ctx, func(tx *Tx) error {
		changed = 0
		if _, err := tx.Exec("DELETE "+pastTurns, tenant, pool); err != nil {
			return err
		}
		counted, stored, err := poolUse(tx, tenant, pool)
		if err != nil || counted == stored {
			return err
		}
		changed = 1
		_, err = tx.Exec(`INSERT INTO pools VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET held = excluded.held, queued = excluded.queued`,
			tenant, pool, counted.held, counted.queued)
		return err
	})
	if err != nil {
		return 0, wrap(err, "reconcile pool", pool)
	}
	return changed, nil
}

type use struct{ held, queued int }

// poolUse returns the use counted from the records, and the stored counts.
func poolUse(tx *Tx, tenant, pool string) (counted, stored use, err error) {
	err = tx.QueryRow(`SELECT count(*) - count(place), count(place) FROM (
			SELECT place FROM runs WHERE tenant = ?1 AND pool = ?2
			UNION ALL
			SELECT place FROM side_slots WHERE tenant = ?1 AND pool = ?2)`,
		tenant, pool).Scan(&counted.held, &counted.queued)
	if err != nil {
		return use{}, use{}, err
	}
	err = tx.QueryRow("SELECT held, queued FROM pools WHERE tenant = ? AND pool = ?",
		tenant, pool).Scan(&stored.held, &stored.queued)
	if errors.Is(err, ErrNoRow) {
		err = nil
	}
	return counted, stored, err
}
