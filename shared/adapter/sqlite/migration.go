package sqlite

import (
	"context"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite/sqlitex"
)

const createMigrations = `CREATE TABLE IF NOT EXISTS migrations (
	owner   TEXT PRIMARY KEY,
	version INTEGER NOT NULL
) STRICT, WITHOUT ROWID`

// Migrate brings the owner's tables to the version of the last step. Step n, from 1, changes
// version n-1 to n in its own transaction. A step may have several statements. Steps are only
// appended, never changed. Migrate returns ErrNewer, without a change, if the file is beyond
// the last step.
func (d *DB) Migrate(ctx context.Context, owner string, steps []string) error {
	version, err := d.version(ctx, owner)
	if err != nil {
		return fmt.Errorf("cannot migrate the tables of %s: %w", owner, err)
	}
	if version > len(steps) {
		return fmt.Errorf("cannot use the database %s: %w: the tables of %s are at version %d, this program knows %d",
			d.path, ErrNewer, owner, version, len(steps))
	}
	for ; version < len(steps); version++ {
		err := d.Write(ctx, func(tx *Tx) error {
			if _, err := tx.Exec(createMigrations); err != nil {
				return err
			}
			if err := sqlitex.ExecScript(tx.conn, steps[version]); err != nil {
				return asFault(err)
			}
			_, err := tx.Exec(`INSERT INTO migrations (owner, version) VALUES (?, ?)
				ON CONFLICT (owner) DO UPDATE SET version = excluded.version`, owner, version+1)
			return err
		})
		if err != nil {
			return fmt.Errorf("cannot migrate the tables of %s to version %d: %w", owner, version+1, err)
		}
	}
	return nil
}

// Migrated reports whether the file has the tables of any owner.
func (d *DB) Migrated(ctx context.Context) (bool, error) {
	tables := 0
	err := d.Read(ctx, func(tx *Tx) error {
		return tx.QueryRow("SELECT count(*) FROM sqlite_schema WHERE name = 'migrations'").Scan(&tables)
	})
	return tables > 0, err
}

// version returns the version of the owner's tables, 0 before the first step.
func (d *DB) version(ctx context.Context, owner string) (version int, err error) {
	err = d.Read(ctx, func(tx *Tx) error {
		var tables int
		if err := tx.QueryRow("SELECT count(*) FROM sqlite_schema WHERE name = 'migrations'").Scan(&tables); err != nil {
			return err
		}
		if tables == 0 {
			return nil
		}
		err := tx.QueryRow("SELECT version FROM migrations WHERE owner = ?", owner).Scan(&version)
		if errors.Is(err, ErrNoRow) {
			return nil
		}
		return err
	})
	return version, err
}
