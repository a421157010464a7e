package sqlite

import (
	"context"
	"errors"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Line implements orchestrator.Store.
func (s *Store) Queue(ctx context.Context, tenant, pool string, limit int) ([]run.Ref, error) {
	line, err := s.refs(ctx, `SELECT tenant, id FROM runs
		WHERE tenant = ? AND pool = ? AND since IS NOT NULL ORDER BY since, id LIMIT ?`,
		tenant, pool, max(limit, 0))
	return line, told(err, "read the line of pool", pool)
}

// Position implements orchestrator.Store.
func (s *Store) Position(ctx context.Context, r run.Run) (before int, err error) {
	err = s.db.Read(ctx, func(tx *Tx) error {
		var pool string
		var since int64
		err := tx.QueryRow(`SELECT pool, since FROM runs
			WHERE tenant = ? AND id = ? AND pool IS NOT NULL AND since IS NOT NULL`, r.Tenant, r.ID).Scan(&pool, &since)
		if errors.Is(err, ErrNoRow) {
			return port.ErrNotFound
		}
		if err != nil {
			return err
		}
		return tx.QueryRow(`SELECT count(*) FROM runs
			WHERE tenant = ? AND pool = ? AND since IS NOT NULL AND (since, id) < (?, ?)`,
			r.Tenant, pool, since, r.ID).Scan(&before)
	})
	return before, told(err, "find the place in its line of run", r.ID)
}

// Pools implements orchestrator.Store, ordered by tenant and pool.
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
	return pools, told(err, "read", "the pools")
}

// Mend implements orchestrator.Store. Who holds and who waits stands in the
// records themselves; what can differ from them is the pool's count, the one
// row that this may change.
func (s *Store) Reconcile(ctx context.Context, tenant, pool string) (int, error) {
	// Looks first without the writer, for whom a long line takes a while.
	var right bool
	err := s.db.Read(ctx, func(tx *Tx) error {
		counted, noted, err := poolUse(tx, tenant, pool)
		right = counted == noted
		return err
	})
	if err != nil || right {
		return 0, told(err, "look at pool", pool)
	}
	changed := 0
	err = s.db.Write(ctx, func(tx *Tx) error {
		changed = 0
		counted, noted, err := poolUse(tx, tenant, pool)
		if err != nil || counted == noted {
			return err
		}
		changed = 1
		_, err = tx.Exec(`INSERT INTO pools VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET held = excluded.held, queued = excluded.queued`,
			tenant, pool, counted.held, counted.queued)
		return err
	})
	if err != nil {
		return 0, told(err, "mend pool", pool)
	}
	return changed, nil
}

type use struct{ held, queued int }

// poolUse gives what the records say about the pool, and what was noted.
func poolUse(tx *Tx, tenant, pool string) (counted, noted use, err error) {
	err = tx.QueryRow("SELECT count(*) - count(since), count(since) FROM runs WHERE tenant = ? AND pool = ?",
		tenant, pool).Scan(&counted.held, &counted.queued)
	if err != nil {
		return use{}, use{}, err
	}
	err = tx.QueryRow("SELECT held, queued FROM pools WHERE tenant = ? AND pool = ?",
		tenant, pool).Scan(&noted.held, &noted.queued)
	if errors.Is(err, ErrNoRow) {
		err = nil
	}
	return counted, noted, err
}
