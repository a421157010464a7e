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

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// queued is the number of changes that may wait for the writer before Write
// blocks.
const queued = 4096

// DB is one database file, locked by this process. It is safe for concurrent
// use.
type DB struct {
	path    string
	lock    *os.File
	writer  *sqlite.Conn
	readers *readers
	relaxed bool // used only by the writer's goroutine

	queue   chan *change
	closing chan struct{}
	stopped chan struct{}
	once    sync.Once
	closed  error

	commits, relaxations, changes, rows atomic.Int64
	encoded, decoded                    atomic.Int64
	observer                            atomic.Pointer[func(Statement)]

	news  commitNotifier
	tails tails
}

// Open opens the file, or creates it with mode 0600; its folder must exist. It
// returns ErrInUse if another process has the lock, and ErrDamaged if the file
// is not an SQLite database. It leaves path+".lock" beside the file.
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
		news:    commitNotifier{next: map[string]chan struct{}{}},
		tails:   tails{known: map[string]*tail{}},
	}
	if d.writer, err = create(path); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open the database %s: %w", path, err), release(lock))
	}
	go d.run()
	return d, nil
}

func create(path string) (*sqlite.Conn, error) {
	// SQLite would create the file readable for everyone; it contains tokens.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	pragmas := []string{"PRAGMA cache_size = -2048"} // KiB
	if info.Size() == 0 {
		pragmas = append(pragmas, setIncremental) // only before the first table
	}
	return connect(path, append(pragmas,
		"PRAGMA journal_mode = WAL",
		// Reading the schema detects a file that is not an SQLite database.
		"SELECT count(*) FROM sqlite_schema",
	)...)
}

// Close waits for the current commit and for the readers, and releases the
// lock. Changes that wait for the writer fail with an Unavailable fault.
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

// Stats are counters since Open.
type Stats struct {
	// Commits counts transactions that changed rows. Relaxed counts those of them without an
	// fsync. Changes counts the calls of Write and WriteRelaxed in them.
	Commits, Relaxed, Changes int64
	// Rows counts the rows inserted, updated or deleted.
	Rows int64
	// Encoded and Decoded count the records of runs that a Store has encoded and decoded.
	Encoded, Decoded int64
}

// Stats returns the counters.
func (d *DB) Stats() Stats {
	return Stats{
		Commits: d.commits.Load(), Relaxed: d.relaxations.Load(), Changes: d.changes.Load(), Rows: d.rows.Load(),
		Encoded: d.encoded.Load(), Decoded: d.decoded.Load(),
	}
}

func errClosed() error { return fault.New(fault.Unavailable, "the database is closed") }
