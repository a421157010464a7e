package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/sortie-dev/sortie/shared/fault"
)

// readers is how many snapshots may be open at once. More would only compete
// for the same disk and page cache.
const readers = 4

// queued is how many changes may wait for the writer before Write blocks.
const queued = 4096

// DB is one database file, held by this process alone. It is safe for use by
// many goroutines.
type DB struct {
	path   string
	lock   *os.File
	writer *conn
	// idle has one entry for each reader that may be made; nil is one that was
	// not opened yet.
	idle chan *conn

	queue   chan *change
	closing chan struct{}
	stopped chan struct{}
	once    sync.Once
	closed  error

	commits, changes, bytes atomic.Int64
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
		idle:    make(chan *conn, readers),
		queue:   make(chan *change, queued),
		closing: make(chan struct{}),
		stopped: make(chan struct{}),
	}
	for range readers {
		d.idle <- nil
	}
	if d.writer, err = create(ctx, path); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open the database %s: %w", path, err), release(lock))
	}
	go d.run()
	return d, nil
}

func create(ctx context.Context, path string) (*conn, error) {
	// SQLite would make the file readable for everyone; it holds tokens.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	return connect(ctx, path,
		"PRAGMA journal_mode = WAL",
		// Reads the schema: a file that is none of SQLite's is found here.
		"SELECT count(*) FROM sqlite_schema",
	)
}

// Read gives do a view of the database as it is now, which no later change
// disturbs. do must not keep the Tx, and must not write. It waits for one of a
// few connections; a ctx that ends stops the wait, and the query between two
// rows. The error is do's own, or a fault.
func (d *DB) Read(ctx context.Context, do func(*Tx) error) error {
	c, err := d.borrow(ctx)
	if err != nil {
		return err
	}
	defer func() { d.idle <- c }()
	if c == nil {
		// Its cache is good until the next commit of the writer, which is soon.
		if c, err = connect(ctx, d.path, "PRAGMA query_only = ON", "PRAGMA cache_size = -1024"); err != nil {
			return err
		}
	}
	if err := c.command("BEGIN"); err != nil {
		return err
	}
	tx := &Tx{conn: c, ctx: ctx, readOnly: true}
	defer func() {
		tx.end()
		if err := c.command("ROLLBACK"); err != nil {
			_ = c.close() // the next reader makes a new one
			c = nil
		}
	}()
	return do(tx)
}

// borrow takes one of the readers' places, which Close waits for.
func (d *DB) borrow(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-d.closing:
		return nil, errClosed()
	default:
	}
	select {
	case c := <-d.idle:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-d.closing:
		return nil, errClosed()
	}
}

// Close waits for the commit that is under way and for the readers, tells those
// who wait for the writer that the database is closed, and gives the file free.
func (d *DB) Close() error {
	d.once.Do(func() {
		close(d.closing)
		<-d.stopped
		var errs []error
		for range readers {
			if c := <-d.idle; c != nil {
				errs = append(errs, c.close())
			}
		}
		errs = append(errs, d.writer.close(), release(d.lock))
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
	// BytesWritten went into the write-ahead log, in whole pages; a checkpoint
	// writes the newest copy of each page once more.
	BytesWritten int64
}

// Stats tells what was written.
func (d *DB) Stats() Stats {
	return Stats{Commits: d.commits.Load(), Changes: d.changes.Load(), BytesWritten: d.bytes.Load()}
}

func errClosed() error { return fault.New(fault.Unavailable, "the database is closed") }
