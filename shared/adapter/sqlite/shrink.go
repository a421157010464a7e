package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"zombiezen.com/go/sqlite/sqlitex"
)

// incremental is the value of PRAGMA auto_vacuum with which Shrink can return free pages.
const (
	incremental    = 2
	setIncremental = "PRAGMA auto_vacuum = 2"
)

// Shrink leaves free a 16th of the pages of the file, at least leastSlack. The next writes use
// them, so that the file does not shrink and grow in turn. shrinkStep is the number of pages
// that one change moves. Other writers wait that long.
const (
	leastSlack = 16
	slackPart  = 16
	shrinkStep = 256
)

// Size is the size of the database in bytes.
type Size struct {
	// File is the size of the file. Used is its size without free pages.
	File, Used int64
}

// Size returns the size of the database.
func (d *DB) Size(ctx context.Context) (s Size, err error) {
	pages, free, bytes, err := d.pages(ctx)
	return Size{File: pages * bytes, Used: (pages - free) * bytes}, err
}

// pages returns the number of pages, how many of them are free, and the size of each.
func (d *DB) pages(ctx context.Context) (pages, free, bytes int64, err error) {
	err = d.Read(ctx, func(tx *Tx) error {
		return errors.Join(
			tx.QueryRow("PRAGMA page_count").Scan(&pages),
			tx.QueryRow("PRAGMA freelist_count").Scan(&free),
			tx.QueryRow("PRAGMA page_size").Scan(&bytes),
		)
	})
	return pages, free, bytes, err
}

// Shrink returns free pages at the end of the file to the disk, at most limit of them, and
// reports how many. It does nothing in a file of an earlier version that Compact has not
// rewritten.
func (d *DB) Shrink(ctx context.Context, limit int) (freed int, err error) {
	pages, free, _, err := d.pages(ctx)
	if err != nil {
		return 0, fmt.Errorf("cannot shrink the database: %w", err)
	}
	excess := min(int(free-max(leastSlack, pages/slackPart)), limit)
	for freed < excess {
		step, before, after := min(excess-freed, shrinkStep), 0, 0
		err := d.Write(ctx, func(tx *Tx) error {
			err := tx.QueryRow("PRAGMA freelist_count").Scan(&before)
			if err == nil {
				err = asFault(sqlitex.ExecuteTransient(tx.conn, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", step), nil))
			}
			if err != nil {
				return err
			}
			return tx.QueryRow("PRAGMA freelist_count").Scan(&after)
		})
		if err != nil {
			return freed, fmt.Errorf("cannot shrink the database: %w", err)
		}
		if after >= before { // another change took the pages, or the file cannot shrink
			break
		}
		freed += before - after
	}
	if freed == 0 {
		return 0, nil
	}
	// The file is truncated by the checkpoint. A passive one does not wait.
	return freed, d.runSeparately(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
}

// runSeparately runs statements on a separate connection.
func (d *DB) runSeparately(ctx context.Context, statements ...string) error {
	if err := d.enter(ctx); err != nil {
		return err
	}
	defer d.leave()
	conn, err := connect(d.path)
	if err != nil {
		return err
	}
	conn.SetInterrupt(ctx.Done())
	for _, each := range statements {
		if err = asFault(sqlitex.ExecuteTransient(conn, each, nil)); err != nil {
			break
		}
	}
	return errors.Join(err, conn.Close())
}

// vacuums serializes Compact: the folder of temporary files is one variable of SQLite.
var vacuums sync.Mutex

// Compact rewrites a file of an earlier version so that Shrink works, and reports whether it
// did. Everything else works without it. It needs free disk space of up to twice the size of
// the file, and otherwise returns a StoreFull fault. A failure, or a kill at any moment, leaves
// the file unchanged. Call Compact after Migrate, which refuses a file of a newer version.
func (d *DB) Compact(ctx context.Context) (done bool, err error) {
	mode := 0
	err = d.Read(ctx, func(tx *Tx) error {
		tables := 0 // a query before the pragma reads the header again
		return errors.Join(tx.QueryRow("SELECT count(*) FROM sqlite_schema").Scan(&tables), tx.QueryRow("PRAGMA auto_vacuum").Scan(&mode))
	})
	if err == nil && mode != incremental {
		vacuums.Lock()
		defer vacuums.Unlock()
		done = true
		err = d.runSeparately(ctx,
			"PRAGMA temp_store = FILE", // a copy of the whole file does not belong into memory
			"PRAGMA temp_store_directory = "+quoted(filepath.Dir(d.path)),
			setIncremental,
			"VACUUM",
			"PRAGMA wal_checkpoint(TRUNCATE)",
		)
		err = errors.Join(err, d.runSeparately(context.WithoutCancel(ctx), "PRAGMA temp_store_directory = ''"))
	}
	if err != nil {
		return false, fmt.Errorf("cannot compact the database %s: %w", d.path, err)
	}
	return done, nil
}

// quoted returns text as an SQL literal.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
