package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// purgeBatch is the number of records that Purge deletes in one change. Other writers wait that
// long.
const purgeBatch = 100

// Due implements port.Store.
func (s *Store) Due(ctx context.Context, now time.Time, after string, limit int) ([]run.Ref, string, error) {
	refs, next, err := s.due(ctx, "act_by", now, after, limit)
	return refs, next, wrap(err, "read", "what is due")
}

// OutputsDue implements port.Store.
func (s *Store) OutputsDue(ctx context.Context, now time.Time, after string, limit int) ([]run.Ref, string, error) {
	refs, next, err := s.due(ctx, "output_due", now, after, limit)
	return refs, next, wrap(err, "read", "the outputs that have expired")
}

func (s *Store) due(ctx context.Context, column string, now time.Time, after string, limit int) (refs []run.Ref, next string, err error) {
	return s.duePage(ctx, "runs", column, now, after, limit, " AND (purge_at IS NULL OR purge_at > ?5)", s.now())
}

// duePage returns a page of a table, ordered by an indexed column. A place is the value of the
// column and the number of the last row. and is a further condition, args are its arguments from ?5.
func (s *Store) duePage(
	ctx context.Context, table, column string, now time.Time, after string, limit int, and string, args ...any,
) (refs []run.Ref, next string, err error) {
	var at, n int64 = math.MinInt64, 0
	var last [2]int64
	if after != "" {
		if _, err := fmt.Sscanf(after, "%d/%d", &at, &n); err != nil {
			return nil, "", fault.Wrap(err, fault.Internal, "malformed place of a page")
		}
	}
	// SQLite does not use the number of the row to continue in an index, hence two ranges: many jobs
	// may have the same time.
	query := fmt.Sprintf(`SELECT tenant, id, %[2]s, n FROM %[1]s WHERE %[2]s = 0 + ?2 AND %[2]s <= ?1 AND n > ?3%[3]s
		UNION ALL SELECT tenant, id, %[2]s, n FROM %[1]s WHERE %[2]s > ?2 AND %[2]s <= ?1%[3]s ORDER BY %[2]s, n LIMIT 0 + ?4`, table, column, and)
	err = s.db.Read(ctx, func(tx *Tx) error {
		refs = nil
		rows := tx.Query(query, slices.Concat([]any{nanos(now), at, n, max(limit, 0)}, args)...)
		for rows.Next() {
			var ref run.Ref
			if err := rows.Scan(&ref.Tenant, &ref.ID, &last[0], &last[1]); err != nil {
				return err
			}
			refs = append(refs, ref)
		}
		return rows.Err()
	})
	if err == nil && len(refs) == limit && limit > 0 {
		next = fmt.Sprintf("%d/%d", last[0], last[1])
	}
	return refs, next, err
}

// WithMachine implements port.Store. It reads only the index.
func (s *Store) WithMachine(ctx context.Context, after run.Ref, limit int) (placed []port.Placement, err error) {
	err = s.db.Read(ctx, func(tx *Tx) error {
		placed = nil
		rows := tx.Query(`SELECT tenant, id, state, attempt, machine FROM runs
			WHERE machine IS NOT NULL AND (tenant, id) > (?, ?) ORDER BY tenant, id LIMIT 0 + ?`,
			after.Tenant, after.ID, max(limit, 0))
		for rows.Next() {
			var p port.Placement
			var machine []byte
			if err := rows.Scan(&p.Run.Tenant, &p.Run.ID, &p.State, &p.Attempt, &machine); err != nil {
				return err
			}
			if err := json.Unmarshal(machine, &p.Machine); err != nil {
				return fmt.Errorf("cannot decode the machine of run %s: %w", p.Run.ID, err)
			}
			placed = append(placed, p)
		}
		return rows.Err()
	})
	return placed, wrap(err, "read", "the runs with a machine")
}

// refs returns the rows of a query with the columns tenant and id.
func (s *Store) refs(ctx context.Context, query string, args ...any) (refs []run.Ref, err error) {
	err = s.db.Read(ctx, func(tx *Tx) error {
		refs = nil
		rows := tx.Query(query, args...)
		for rows.Next() {
			var ref run.Ref
			if err := rows.Scan(&ref.Tenant, &ref.ID); err != nil {
				return err
			}
			refs = append(refs, ref)
		}
		return rows.Err()
	})
	return refs, err
}

// Ended returns the runs that have ended and have nothing left to do, ordered by their expiry.
// It omits expired runs.
func (s *Store) Ended(ctx context.Context, limit int) ([]run.Ref, error) {
	refs, err := s.refs(ctx, `SELECT tenant, id FROM runs WHERE expires_at > ? AND act_by IS NULL
		ORDER BY expires_at LIMIT 0 + ?`, s.now(), max(limit, 0))
	return refs, wrap(err, "read", "the runs that have ended")
}

// Purge implements port.Store. It works in batches. It also returns the number of deleted
// records with an error.
func (s *Store) Purge(ctx context.Context, now time.Time, limit int) (int, error) {
	forgotten := 0
	for forgotten < limit {
		batch := min(limit-forgotten, purgeBatch)
		var gone int64
		err := s.db.Write(ctx, func(tx *Tx) (err error) {
			gone, err = tx.Exec(`DELETE FROM runs WHERE n IN
				(SELECT n FROM runs WHERE purge_at <= ? ORDER BY purge_at LIMIT 0 + ?)`, nanos(now), batch)
			return err
		})
		if err != nil {
			return forgotten, fmt.Errorf("cannot forget expired runs: %w", err)
		}
		if forgotten += int(gone); gone > 0 {
			s.newest.forget()
		}
		if int(gone) < batch {
			break
		}
	}
	err := s.db.Write(ctx, func(tx *Tx) error {
		_, err := tx.Exec("DELETE FROM accounts WHERE (tenant, scope) IN (SELECT tenant, scope FROM accounts WHERE purge_at <= ? LIMIT 0 + ?)",
			nanos(now), max(limit, 0))
		return err
	})
	if err != nil {
		return forgotten, fmt.Errorf("cannot forget expired accounts: %w", err)
	}
	if err := s.purgeUsage(ctx, now, limit); err != nil {
		return forgotten, fmt.Errorf("cannot forget old usage: %w", err)
	}
	return forgotten, nil
}
