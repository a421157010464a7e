package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"zombiezen.com/go/sqlite"

	"github.com/sortie-dev/sortie/shared/fault"
)

// queued is how many changes may wait for the writer before Write blocks.
const queued = 4096

// DB is one database file, held by this process alone. It is safe for use by
// many goroutines.
type DB struct {
	path    string
	lock    *os.File
	writer  *sqlite.Conn
	readers *readers

	queue   chan *change
	closing chan struct{}
	stopped chan struct{}
	once    sync.Once
	closed  error

	commits, changes, rows atomic.Int64
}

// Open opens the file, and makes it (mode 0600) where there is none; its folder
// must exist. ErrInUse where another process holds it, ErrDamaged where it is
// no SQLite database. A path+".lock" is left beside it.
func Open(ctx context.Context, path string) (*DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the database: %w", err)
	}
	lock, err := acquire(ctx, path+".lock")
	if err != nil {
		return nil, fmt.Errorf("cannot open the database %s: %w", path, err)
	}
	d := &DB{
		path: path, lock: lock,
		readers: newReaders(),
		queue:   make(chan *change, queued),
		closing: make(chan struct{}),
		stopped: make(chan struct{}),
	}
	if d.writer, err = create(path); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open the database %s: %w", path, err), release(lock))
	}
	go d.run()
	return d, nil
}

func create(path string) (*sqlite.Conn, error) {
	// SQLite would make the file readable for everyone; it holds tokens.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	return connect(path,
		"PRAGMA cache_size = -2048", // KiB
		"PRAGMA journal_mode = WAL",
		// Reads the schema: a file that is none of SQLite's is found here.
		"SELECT count(*) FROM sqlite_schema",
	)
}

// Close waits for the commit that is under way and for the readers, tells those
// who wait for the writer that the database is closed, and gives the file free.
func (d *DB) Close() error {
	d.once.Do(func() {
		close(d.closing)
		<-d.stopped
		errs := append(d.readers.close(), d.writer.Close(), release(d.lock))
		if err := errors.Join(errs...); err != nil {
			d.closed = fmt.Errorf("cannot close the database %s: %w", d.path, err)
		}
	})
	return d.closed
}

// Path is the file's absolute path.
func (d *DB) Path() string { return d.path }

// Stats counts since Open.
type Stats struct {
	// Commits are transactions that were written with an fsync; Changes are
	// the calls of Write that were part of them.
	Commits, Changes int64
	// Rows are the rows that were inserted, updated or deleted.
	Rows int64
}

// Stats tells what was written.
func (d *DB) Stats() Stats {
	return Stats{Commits: d.commits.Load(), Changes: d.changes.Load(), Rows: d.rows.Load()}
}

func errClosed() error { return fault.New(fault.Unavailable, "the database is closed") }
