package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

const heartbeatColumns = "attempt, worker, at, progress, message, token, generation, cancel, token_at, previous, forward_every, timeout, received"

// Heartbeat implements port.Store. It finds the run's row by the index and does
// not read it.
func (s *Store) Heartbeat(ctx context.Context, ref run.Ref, b run.Heartbeat) (now run.Heartbeat, err error) {
	var message any
	if b.Message != "" {
		message = b.Message
	}
	err = s.db.Write(ctx, func(tx *Tx) error {
		now, err = scanHeartbeat(tx.QueryRow(`UPDATE beats SET
				previous = iif(? >= at, at, previous), at = max(at, ?), progress = coalesce(?, progress), message = coalesce(?, message),
				received = received + ?
			WHERE run = (SELECT n FROM runs WHERE tenant = ? AND id = ?) AND attempt = ? AND worker = ?
			RETURNING `+heartbeatColumns,
			nanos(b.At), nanos(b.At), b.Progress, message, b.Received, ref.Tenant, ref.ID, b.Attempt, b.WorkerID))
		return err
	})
	return now, wrap(err, "store a heartbeat of run", ref.ID)
}

// LastHeartbeat implements port.Store.
func (s *Store) LastHeartbeat(ctx context.Context, ref run.Ref) (b run.Heartbeat, err error) {
	err = s.db.Read(ctx, func(tx *Tx) error {
		b, err = scanHeartbeat(tx.QueryRow(`SELECT `+heartbeatColumns+` FROM beats
			WHERE run = (SELECT n FROM runs WHERE tenant = ? AND id = ?)`, ref.Tenant, ref.ID))
		return err
	})
	return b, wrap(err, "read the last heartbeat of run", ref.ID)
}

func scanHeartbeat(row Row) (b run.Heartbeat, err error) {
	var at int64
	var tokenAt, previous *int64
	err = row.Scan(&b.Attempt, &b.WorkerID, &at, &b.Progress, &b.Message, &b.Token, &b.Generation, &b.Cancel,
		&tokenAt, &previous, &b.ForwardEvery, &b.Timeout, &b.Received)
	if errors.Is(err, ErrNoRow) {
		return run.Heartbeat{}, port.ErrNotFound
	}
	b.At, b.TokenAt, b.Previous = time.Unix(0, at).UTC(), timeOf(tokenAt), timeOf(previous)
	return b, err
}

// changeHeartbeat applies the heartbeat change of a write to the run with row
// n.
func changeHeartbeat(tx *Tx, n int64, w *port.Write) error {
	c := w.Heartbeat
	if !c.Evaluated.IsZero() {
		var there int
		err := tx.QueryRow("SELECT 1 FROM beats WHERE run = ? AND at = ?", n, nanos(c.Evaluated)).Scan(&there)
		if errors.Is(err, ErrNoRow) {
			return &port.Conflict{Ref: w.Run.Ref()}
		}
		if err != nil {
			return err
		}
	}
	if b := c.Open; b != nil {
		_, err := tx.Exec("INSERT OR REPLACE INTO beats (run, "+heartbeatColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			n, b.Attempt, b.WorkerID, nanos(b.At), b.Progress, b.Message, b.Token, b.Generation, b.Cancel,
			moment(b.TokenAt), moment(b.Previous), int64(b.ForwardEvery), int64(b.Timeout), b.Received)
		if err != nil {
			return err
		}
	}
	if c.Token != nil {
		if _, err := tx.Exec("UPDATE beats SET token = ?, generation = ?, token_at = ? WHERE run = ?", *c.Token, c.Generation, moment(c.TokenAt), n); err != nil {
			return err
		}
	}
	if c.Cancel != nil {
		if _, err := tx.Exec("UPDATE beats SET cancel = ? WHERE run = ?", *c.Cancel, n); err != nil {
			return err
		}
	}
	if c.Close {
		if _, err := tx.Exec("DELETE FROM beats WHERE run = ?", n); err != nil {
			return err
		}
	}
	return nil
}

// Reception implements port.Store.
func (s *Store) Reception(ctx context.Context) (r port.Reception, err error) {
	err = s.db.Read(ctx, func(tx *Tx) error {
		var since, at *int64
		err := tx.QueryRow("SELECT since, probed_at, crowded FROM reception").Scan(&since, &at, &r.Crowded)
		if errors.Is(err, ErrNoRow) {
			return nil
		}
		r.Since, r.At = timeOf(since), timeOf(at)
		return err
	})
	return r, wrap(err, "read", "the reception of heartbeats")
}

// RecordReception implements port.Store.
func (s *Store) RecordReception(ctx context.Context, before, after port.Reception) error {
	err := s.db.Write(ctx, func(tx *Tx) error {
		if _, err := tx.Exec("INSERT OR IGNORE INTO reception (one) VALUES (1)"); err != nil {
			return err
		}
		changed, err := tx.Exec("UPDATE reception SET since = ?, probed_at = ?, crowded = ? WHERE since IS ? AND probed_at IS ? AND crowded = ?",
			moment(after.Since), moment(after.At), after.Crowded, moment(before.Since), moment(before.At), before.Crowded)
		if err == nil && changed == 0 {
			return port.ErrConflict
		}
		return err
	})
	return wrap(err, "store", "the reception of heartbeats")
}

// Claim implements port.Store.
func (s *Store) Claim(ctx context.Context) error {
	err := s.db.Write(ctx, func(tx *Tx) error {
		_, err := tx.Exec("INSERT OR IGNORE INTO claim (one) VALUES (1)")
		return err
	})
	return wrap(err, "store", "the claim of the records")
}

// Claimed implements port.Store.
func (s *Store) Claimed(ctx context.Context) (claimed bool, err error) {
	err = s.db.Read(ctx, func(tx *Tx) error {
		return tx.QueryRow("SELECT EXISTS (SELECT 1 FROM claim)").Scan(&claimed)
	})
	return claimed, wrap(err, "read", "the claim of the records")
}

// HeartbeatsDue implements port.Store. The place is the due time and the row of the
// last run.
func (s *Store) HeartbeatsDue(ctx context.Context, now time.Time, after string, limit int) (refs []run.Ref, next string, err error) {
	var due, row int64
	if after != "" {
		if _, err := fmt.Sscan(after, &due, &row); err != nil {
			return nil, "", fault.Wrap(err, fault.Internal, "malformed place in the overdue heartbeats")
		}
	}
	err = s.db.Read(ctx, func(tx *Tx) error {
		refs, next = nil, ""
		rows := tx.Query(`SELECT tenant, id, b.at + b.timeout, n FROM beats b JOIN runs ON n = b.run
			WHERE b.timeout > 0 AND b.at + b.timeout <= ? AND (b.at + b.timeout, n) > (?, ?)
			ORDER BY b.at + b.timeout, n LIMIT 0 + ?`, nanos(now), due, row, max(limit, 0))
		for rows.Next() {
			var ref run.Ref
			if err := rows.Scan(&ref.Tenant, &ref.ID, &due, &row); err != nil {
				return err
			}
			refs = append(refs, ref)
		}
		return rows.Err()
	})
	if len(refs) == limit && limit > 0 {
		next = fmt.Sprint(due, row)
	}
	return refs, next, wrap(err, "read", "the overdue heartbeats")
}

// timeOf is the reverse of moment.
func timeOf(nanos *int64) time.Time {
	if nanos == nil {
		return time.Time{}
	}
	return time.Unix(0, *nanos).UTC()
}
