package sqlite

import (
	"context"
	"errors"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// checkSlots refuses a commit that acquires a slot which was not free, or a place in a full
// queue. It runs after all writes, so slots that the same commit releases are free, in any
// order of the writes.
func checkSlots(tx *Tx, records ...record) error {
	for _, rec := range records {
		for _, each := range []struct {
			pool   any // nil if no pool counts the slot
			slot   platform.Slot
			change run.LeaseChange
		}{
			{rec.pool, rec.Run.Slot, rec.Lease},
			{rec.side[sideJob].pool, rec.Run.JobSlot, rec.JobLease},
			{rec.side[sideKey].pool, rec.Run.KeySlot, rec.KeyLease},
		} {
			if each.pool == nil {
				continue
			}
			if err := checkSlot(tx, rec.Run.Tenant, each.slot, each.change); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkSlot checks one slot. It applies the smaller one of two limits: that of the pool's
// record and that of the decision, which may be older.
func checkSlot(tx *Tx, tenant string, slot platform.Slot, change run.LeaseChange) error {
	joins := change == run.LeaseEnqueue && slot.QueueLimit > 0
	if change != run.LeaseTake && change != run.LeaseGrant && !joins {
		return nil
	}
	var held, queued, limit int
	err := tx.QueryRow(`SELECT held, queued, min(?3, coalesce((SELECT slots FROM pool_records WHERE tenant = ?1 AND id = ?2), ?3))
		FROM pools WHERE tenant = ?1 AND pool = ?2`, tenant, slot.Pool, slot.Limit).Scan(&held, &queued, &limit)
	if err != nil {
		return err
	}
	if joins && queued > slot.QueueLimit || !joins && held > limit || change == run.LeaseTake && queued > 0 {
		return &port.NoSlot{Pool: slot.Pool}
	}
	return nil
}

// takeTurns updates the turns of the run's key in the queue of its pool.
func takeTurns(tx *Tx, rec record) error {
	slot := rec.Run.Slot
	turn := slot.Turn()
	if turn == "" {
		return nil
	}
	var changed int64
	var err error
	lease := rec.Lease
	if lease == run.LeaseEnqueue && slot.Round == 0 { // the platform has refused its start
		lease = run.LeaseRequeue
	}
	switch lease {
	case run.LeaseEnqueue: // at the end of the key's queue as it was read
		changed, err = tx.Exec(`INSERT INTO turns SELECT ?1, ?2, ?3, ?4, 1
			WHERE ?5 = 0 OR EXISTS (SELECT 1 FROM turns WHERE tenant = ?1 AND pool = ?2 AND turn = ?3)
			ON CONFLICT DO UPDATE SET last = excluded.last, queued = queued + 1 WHERE last = ?5`,
			rec.Run.Tenant, slot.Pool, turn, slot.Round, slot.Behind)
	case run.LeaseRequeue: // at its earlier place
		changed, err = tx.Exec(`INSERT INTO turns VALUES (?, ?, ?, ?, 1)
			ON CONFLICT DO UPDATE SET last = max(last, excluded.last), queued = queued + 1`, rec.Run.Tenant, slot.Pool, turn, slot.Round)
	case run.LeaseGrant, run.LeaseDequeue:
		_, err = tx.Exec("UPDATE turns SET queued = queued - 1 WHERE tenant = ? AND pool = ? AND turn = ? AND queued > 0",
			rec.Run.Tenant, slot.Pool, turn)
		return err
	default:
		return nil
	}
	if err == nil && changed == 0 {
		return &port.Conflict{Ref: rec.Run.Ref()}
	}
	return err
}

// QueueState implements port.Store.
func (s *Store) QueueState(ctx context.Context, tenant string, slot platform.Slot) (l platform.QueueState, err error) {
	err = s.db.Read(ctx, func(tx *Tx) error {
		l = platform.QueueState{}
		for _, end := range []struct {
			round *int64
			order string
		}{{&l.Head, "ASC"}, {&l.Tail, "DESC"}} {
			var place string
			err := tx.QueryRow(`SELECT place FROM runs WHERE tenant = ? AND pool = ? AND place BETWEEN ? AND ? ORDER BY place `+
				end.order+` LIMIT 1`, tenant, slot.Pool, slot.Rank(), slot.Rank()+"~").Scan(&place)
			if err != nil && !errors.Is(err, ErrNoRow) {
				return err
			}
			*end.round = platform.RoundOf(place)
		}
		err := tx.QueryRow("SELECT last, queued FROM turns WHERE tenant = ? AND pool = ? AND turn = ?",
			tenant, slot.Pool, slot.Turn()).Scan(&l.Last, &l.Queued)
		if errors.Is(err, ErrNoRow) {
			return nil
		}
		return err
	})
	return l, wrap(err, "read the queue of pool", slot.Pool)
}

// pastTurns are the turns that no longer influence a round: those before the present
// round, of keys without queued runs.
const pastTurns = `FROM turns WHERE tenant = ?1 AND pool = ?2 AND queued = 0
	AND NOT EXISTS (SELECT 1 FROM runs WHERE tenant = ?1 AND pool = ?2
		AND place BETWEEN 'p' || substr(turn, 1, 1) AND 'p' || substr(turn, 1, 1) || printf('%016x~', last))`
