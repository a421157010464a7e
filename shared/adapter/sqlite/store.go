package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/decoded"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Store implements port.Store and port.CommitOutbox in a DB, which other packages may use too.
// A write that failed with a StoreFull or Unavailable fault was not applied.
type Store struct {
	db      *DB
	clock   clock.Clock
	newest  *newest
	decoded *decoded.Documents[run.Run]
	encode  port.EncodeEvents // nil stores changes as JSON
}

var _ port.Store = (*Store)(nil)

// NewStore creates or migrates the store's tables in db. It returns ErrNewer if
// a newer version wrote them. The caller closes db.
func NewStore(ctx context.Context, db *DB, clk clock.Clock) (*Store, error) {
	if err := db.Migrate(ctx, "store", storeSteps); err != nil {
		return nil, err
	}
	if err := db.Migrate(ctx, "webhooks", webhookSteps); err != nil {
		return nil, err
	}
	if err := db.Migrate(ctx, "resources", resourceSteps); err != nil {
		return nil, err
	}
	if err := db.Migrate(ctx, "accounts", accountSteps); err != nil {
		return nil, err
	}
	if err := db.Migrate(ctx, "usage", usageSteps); err != nil {
		return nil, err
	}
	return &Store{db: db, clock: clk, newest: newNewest(), decoded: decoded.New[run.Run](newestLimit, decodedSize)}, nil
}

// notExpiredSQL is the SQL condition of records that lookups find. notPurgedSQL is that of rows
// that are not yet to be purged. Both take the current time.
const (
	notExpiredSQL = "(expires_at IS NULL OR expires_at > ?)"
	notPurgedSQL  = "(purge_at IS NULL OR purge_at > ?)"
)

func (s *Store) now() int64 { return nanos(s.clock.Now()) }

// Create implements port.Store. It also returns a conflict if another run has the task id.
func (s *Store) Create(ctx context.Context, first port.Write, key *port.IdempotencyKey, with ...port.Write) (*run.Run, error) {
	rec, err := s.recordOf(&first, 1)
	if err != nil {
		return nil, err
	}
	others, err := s.recordsOf(with)
	if err != nil {
		return nil, err
	}
	var known []byte
	since, end := s.newest.now(), s.newest.commit(others)
	err = s.write(ctx, nil, func(tx *Tx) error {
		now := s.now()
		if key != nil {
			doc, err := useOfKey(tx, first.Run.Tenant, *key, now)
			if err != nil {
				return err
			}
			if known = doc; known != nil {
				return errKnown
			}
		}
		n, err := insertRun(tx, rec, now)
		if err != nil {
			return err
		}
		if err := writeBeside(tx, n, rec); err != nil {
			return err
		}
		if key != nil {
			if err := insertKey(tx, first.Run.Tenant, *key, n); err != nil {
				return err
			}
		}
		if err := updateRuns(tx, others); err != nil {
			return err
		}
		if err := checkSlots(tx, append(others, rec)...); err != nil {
			return err
		}
		return moveAccounts(tx, append(slices.Clone(with), first)...)
	})
	end(err == nil)
	if errors.Is(err, errKnown) {
		existing, err := s.decodeRun(known)
		return &existing, err
	}
	if err != nil {
		return nil, wrap(err, "create run", first.Run.ID)
	}
	s.newest.addCreated(rec.Run, since)
	return nil, nil
}

// errKnown ends the creation of a run whose idempotency key belongs to another run.
var errKnown = errors.New("known idempotency key")

// useOfKey returns the document of the run that used the key first, or nil for an unknown key.
// It returns ErrKeyTaken if the digest differs.
func useOfKey(tx *Tx, tenant string, key port.IdempotencyKey, now int64) (doc []byte, err error) {
	var digest string
	err = tx.QueryRow(`SELECT keys.digest, runs.doc FROM keys JOIN runs ON runs.n = keys.run
		WHERE keys.tenant = ? || '' AND keys.key = ? || '' AND `+notExpiredSQL, tenant, key.Key, now).Scan(&digest, &doc)
	switch {
	case errors.Is(err, ErrNoRow):
		return nil, nil
	case err == nil && digest != key.Digest:
		return nil, port.ErrKeyTaken
	}
	return doc, err
}

// insertKey binds the key to the run. A row with the same key belongs to an
// expired run.
func insertKey(tx *Tx, tenant string, key port.IdempotencyKey, n int64) error {
	_, err := tx.Exec(`INSERT INTO keys (tenant, key, digest, run) VALUES (?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET digest = excluded.digest, run = excluded.run`, tenant, key.Key, key.Digest, n)
	return err
}

func insertRun(tx *Tx, rec record, now int64) (n int64, err error) {
	r, c := rec.Run, &rec.columns
	insert := func() error {
		return tx.QueryRow(`INSERT INTO runs (tenant, id, task_id, created_at, version, state,
				act_by, expires_at, purge_at, output_due, attempt, machine, pool, place, doc, job, history)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING n`,
			r.Tenant, r.ID, r.TaskID, nanos(r.CreatedAt), r.Version, string(r.State),
			c.actBy, c.expiresAt, c.purgeAt, c.outputDue, c.attempt, c.machine, c.pool, c.place, rec.doc, c.job, rec.history).Scan(&n)
	}
	if err = insert(); !errors.Is(err, ErrNoRow) {
		return n, err
	}
	// The conflicting row may be a run to purge, which does not count.
	gone, err := tx.Exec("DELETE FROM runs WHERE tenant = ? AND (id = ? OR task_id = ?) AND purge_at <= ?",
		r.Tenant, r.ID, r.TaskID, now)
	if err != nil {
		return 0, err
	}
	if gone > 0 {
		if err = insert(); !errors.Is(err, ErrNoRow) {
			return n, err
		}
	}
	return 0, &port.Conflict{Ref: r.Ref()}
}

// writeBeside writes the rows that belong to the record in row n: events and their change
// in the outbox, heartbeat item, the slots of its job and its key, and the result of a run
// of a job.
func writeBeside(tx *Tx, n int64, rec record) error {
	if err := insertEvents(tx, n, rec); err != nil {
		return err
	}
	if err := changeHeartbeat(tx, n, rec.Write); err != nil {
		return err
	}
	if err := setSideSlots(tx, n, rec); err != nil {
		return err
	}
	if err := takeTurns(tx, rec); err != nil || rec.job == nil {
		return err
	}
	return writeResult(tx, rec.Write)
}

func setSideSlots(tx *Tx, n int64, rec record) error {
	for kind, slot := range rec.side {
		var err error
		if slot.pool == nil {
			_, err = tx.Exec("DELETE FROM side_slots WHERE run = ? AND kind = ?", n, kind)
		} else {
			_, err = tx.Exec(`INSERT INTO side_slots (run, kind, tenant, id, pool, place) VALUES (?, ?, ?, ?, ?, ?)
				ON CONFLICT DO UPDATE SET pool = excluded.pool, place = excluded.place
				WHERE pool <> excluded.pool OR place IS NOT excluded.place`,
				n, kind, rec.Run.Tenant, rec.Run.ID, slot.pool, slot.place)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func insertEvents(tx *Tx, n int64, rec record) error {
	for i, e := range rec.Events {
		if inHistory(e, rec.events[i]) {
			continue
		}
		_, err := tx.Exec("INSERT INTO events (run, seq, doc) VALUES (?, ?, ?)", n, e.Seq, rec.events[i])
		if err != nil {
			return err
		}
	}
	if len(rec.Events) == 0 {
		return nil
	}
	return insertChange(tx, rec.Events[len(rec.Events)-1].At, rec.change)
}

// Commit implements port.Store. It returns a conflict if a run was deleted.
func (s *Store) Commit(ctx context.Context, writes ...port.Write) error {
	if len(writes) == 0 {
		return nil
	}
	records, err := s.recordsOf(writes)
	if err != nil {
		return err
	}
	end := s.newest.commit(records)
	err = s.write(ctx, nil, func(tx *Tx) error {
		if err := updateRuns(tx, records); err != nil {
			return err
		}
		if err := checkSlots(tx, records...); err != nil {
			return err
		}
		return moveAccounts(tx, writes...)
	})
	end(err == nil)
	if err != nil {
		return wrap(err, "commit run", writes[0].Run.ID)
	}
	return nil
}

// recordsOf encodes the writes of a commit.
func (s *Store) recordsOf(writes []port.Write) ([]record, error) {
	records := make([]record, len(writes))
	for i := range writes {
		var err error
		if records[i], err = s.recordOf(&writes[i], writes[i].Run.Version+1); err != nil {
			return nil, err
		}
	}
	return records, nil
}

func updateRuns(tx *Tx, records []record) error {
	for _, rec := range records {
		n, err := updateRun(tx, rec)
		if err != nil {
			return err
		}
		if err := writeBeside(tx, n, rec); err != nil {
			return err
		}
		if err := setLimiter(tx, rec.Limiter); err != nil {
			return err
		}
		if err := setWarm(tx, rec.Warm); err != nil {
			return err
		}
	}
	return nil
}

func updateRun(tx *Tx, rec record) (n int64, err error) {
	r, c := rec.Run, &rec.columns
	err = tx.QueryRow(`UPDATE runs SET version = ?, state = ?, act_by = ?, expires_at = ?, purge_at = ?,
			output_due = ?, attempt = ?, machine = ?, pool = ?, place = ?, doc = ?,
			history = joined(history, ?12, ?13)
		WHERE tenant = ? AND id = ? AND version = ? RETURNING n`,
		r.Version, string(r.State), c.actBy, c.expiresAt, c.purgeAt,
		c.outputDue, c.attempt, c.machine, c.pool, c.place, rec.doc, rec.history, r.State.Terminal(),
		r.Tenant, r.ID, r.Version-1).Scan(&n)
	if errors.Is(err, ErrNoRow) {
		return 0, &port.Conflict{Ref: r.Ref()}
	}
	return n, err
}

// wrap adds the operation and the id to an error. It returns the errors of the port unchanged.
func wrap(err error, doing, id string) error {
	if err == nil || errors.Is(err, port.ErrConflict) || errors.Is(err, port.ErrNoSlot) || errors.Is(err, port.ErrNoBudget) ||
		errors.Is(err, port.ErrKeyTaken) || errors.Is(err, port.ErrNotFound) {
		return err
	}
	return fmt.Errorf("cannot %s %s: %w", doing, id, err)
}
