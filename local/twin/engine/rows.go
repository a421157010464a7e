package engine

import (
	"context"
	"errors"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

// migrations are the steps of this package's tables. Steps are only appended.
func migrations() []string {
	return []string{
		`CREATE TABLE executions (
			id         INTEGER PRIMARY KEY,
			name       TEXT    NOT NULL UNIQUE,
			definition TEXT    NOT NULL,
			input      TEXT    NOT NULL,
			status     TEXT    NOT NULL,
			ended      INTEGER NOT NULL,
			due        INTEGER NOT NULL,
			calls      INTEGER NOT NULL,
			entered    INTEGER NOT NULL,
			code       TEXT    NOT NULL,
			cause      TEXT    NOT NULL,
			document   BLOB
		) STRICT;
		CREATE INDEX executions_running ON executions (id) WHERE ended = 0;
		CREATE INDEX executions_ended ON executions (ended) WHERE ended > 0;
		CREATE TABLE execution_definitions (
			digest TEXT PRIMARY KEY,
			text   BLOB NOT NULL
		) STRICT, WITHOUT ROWID`,
	}
}

// rows is a store in a database.
type rows struct{ db *sqlite.DB }

func (s rows) insert(ctx context.Context, r *row, since int64) (taken *row, err error) {
	err = s.db.Write(ctx, func(tx *sqlite.Tx) error {
		taken, err = insertRow(tx, r, since)
		return err
	})
	return taken, err
}

func insertRow(tx *sqlite.Tx, r *row, since int64) (taken *row, err error) {
	for {
		added, err := tx.Exec(`INSERT INTO executions
			(id, name, definition, input, status, ended, due, calls, entered, code, cause, document)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING`,
			r.id, r.name, r.definition, r.input, string(r.status), r.ended, r.due, r.calls, r.entered, r.code, r.cause, r.document)
		if err != nil || added == 1 {
			return nil, err
		}
		removed, err := tx.Exec("DELETE FROM executions WHERE name = ? AND ended > 0 AND ended < ?", r.name, since)
		if err != nil {
			return nil, err
		}
		if removed == 0 {
			return find(tx, r.name)
		}
	}
}

func (s rows) update(ctx context.Context, all ...*row) error {
	return s.db.Write(ctx, func(tx *sqlite.Tx) error { return updateRows(tx, all...) })
}

func updateRows(tx *sqlite.Tx, all ...*row) error {
	for _, r := range all {
		if _, err := tx.Exec(`UPDATE executions SET status = ?, ended = ?, due = ?, calls = ?, entered = ?, code = ?, cause = ?, document = ?
			WHERE id = ?`, string(r.status), r.ended, r.due, r.calls, r.entered, r.code, r.cause, r.document, r.id); err != nil {
			return err
		}
	}
	return nil
}

func find(tx *sqlite.Tx, name string) (*row, error) {
	r := &row{name: name}
	err := tx.QueryRow(`SELECT id, definition, input, status, ended, due, calls, entered, code, cause FROM executions WHERE name = ?`, name).
		Scan(&r.id, &r.definition, &r.input, &r.status, &r.ended, &r.due, &r.calls, &r.entered, &r.code, &r.cause)
	if errors.Is(err, sqlite.ErrNoRow) {
		return nil, errNoRow
	}
	return r, err
}

func (s rows) byName(ctx context.Context, name string) (r *row, err error) {
	err = s.db.Read(ctx, func(tx *sqlite.Tx) error {
		r, err = find(tx, name)
		return err
	})
	return r, err
}

func (s rows) byID(ctx context.Context, id int64) (*row, error) {
	r := &row{id: id}
	err := s.db.Read(ctx, func(tx *sqlite.Tx) error {
		return tx.QueryRow("SELECT name, definition, status, ended, document FROM executions WHERE id = ?", id).
			Scan(&r.name, &r.definition, &r.status, &r.ended, &r.document)
	})
	if errors.Is(err, sqlite.ErrNoRow) {
		return nil, errNoRow
	}
	return r, err
}

func (s rows) running(ctx context.Context, each func(*row)) (last int64, err error) {
	err = s.db.Read(ctx, func(tx *sqlite.Tx) error {
		if err := tx.QueryRow("SELECT coalesce(max(id), 0) FROM executions").Scan(&last); err != nil {
			return err
		}
		found := tx.Query("SELECT id, due, calls FROM executions WHERE ended = 0 ORDER BY id")
		for found.Next() {
			r := row{}
			if err := found.Scan(&r.id, &r.due, &r.calls); err != nil {
				return err
			}
			each(&r)
		}
		return found.Err()
	})
	return last, err
}

// purgeSlice is the number of executions that one write of purge removes. Other
// writers wait for one slice at most.
const purgeSlice = 200

func (s rows) purge(ctx context.Context, before int64, keep string) (count int64, err error) {
	for {
		var removed int64
		err := s.db.Write(ctx, func(tx *sqlite.Tx) (err error) {
			removed, err = tx.Exec(`DELETE FROM executions WHERE id IN
				(SELECT id FROM executions WHERE ended > 0 AND ended < ? ORDER BY ended LIMIT 0 + ?)`, before, purgeSlice)
			return err
		})
		if err != nil {
			return count, err
		}
		if count += removed; removed < purgeSlice {
			return count, s.dropUnused(ctx, keep)
		}
	}
}

// dropUnused removes the definitions without an execution. It looks for them
// outside of the writer, because that reads executions up to the first with the definition, which
// is among the oldest, or all of them once. No execution starts
// with a definition other than keep, so an unused one stays unused.
func (s rows) dropUnused(ctx context.Context, keep string) error {
	var unused []string
	err := s.db.Read(ctx, func(tx *sqlite.Tx) error {
		unused = nil
		found := tx.Query("SELECT digest FROM execution_definitions WHERE digest <> ? AND NOT EXISTS (SELECT 1 FROM executions WHERE definition = digest)", keep)
		for found.Next() {
			var digest string
			if err := found.Scan(&digest); err != nil {
				return err
			}
			unused = append(unused, digest)
		}
		return found.Err()
	})
	if err != nil || len(unused) == 0 {
		return err
	}
	return s.db.Write(ctx, func(tx *sqlite.Tx) error {
		for _, digest := range unused {
			if _, err := tx.Exec("DELETE FROM execution_definitions WHERE digest = ?", digest); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s rows) define(ctx context.Context, digest string, text []byte) error {
	return s.db.Write(ctx, func(tx *sqlite.Tx) error {
		_, err := tx.Exec("INSERT INTO execution_definitions (digest, text) VALUES (?, ?) ON CONFLICT DO NOTHING", digest, text)
		return err
	})
}

func (s rows) definition(ctx context.Context, digest string) (text []byte, err error) {
	err = s.db.Read(ctx, func(tx *sqlite.Tx) error {
		return tx.QueryRow("SELECT text FROM execution_definitions WHERE digest = ?", digest).Scan(&text)
	})
	return text, err
}
