package sqlite

import (
	"context"
	"sync"

	"zombiezen.com/go/sqlite"
)

// snapshots is how many reads may run at once. More would only compete for the
// same disk and page cache.
const snapshots = 4

// readers are the connections for reads. The one used last is used first,
// because its statements are prepared, so there are as many as were ever needed
// at once. (sqlitex.Pool rotates through all of its connections and starts a
// goroutine per read, which makes a short read half as fast.)
type readers struct {
	slots chan struct{} // has a value for each read that may start
	mu    sync.Mutex
	idle  []*sqlite.Conn
}

func newReaders() *readers {
	r := &readers{slots: make(chan struct{}, snapshots)}
	for range snapshots {
		r.slots <- struct{}{}
	}
	return r
}

// take returns an idle connection, or nil if all are in use. The caller has a
// slot.
func (r *readers) take() *sqlite.Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := len(r.idle) - 1
	if last < 0 {
		return nil
	}
	conn := r.idle[last]
	r.idle = r.idle[:last]
	return conn
}

func (r *readers) put(conn *sqlite.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle = append(r.idle, conn)
}

// close waits until all reads have ended. No read starts after it.
func (r *readers) close() (errs []error) {
	for range snapshots {
		<-r.slots
	}
	for _, conn := range r.idle {
		errs = append(errs, conn.Close())
	}
	return errs
}

// Read calls do with a read-only transaction on a snapshot of the database that
// includes every change acknowledged before the call. do must not keep the Tx.
// Read waits for one of a few connections. The end of ctx stops the wait, and
// the query between two rows. The error is do's own, ctx's, or a fault.
func (d *DB) Read(ctx context.Context, do func(*Tx) error) error {
	if err := d.enter(ctx); err != nil {
		return err
	}
	defer d.leave()
	conn := d.readers.take()
	if conn == nil {
		var err error
		// A reader's cache is valid until the next commit only, hence its size.
		if conn, err = connect(d.path, "PRAGMA query_only = ON", "PRAGMA cache_size = -256"); err != nil {
			return err
		}
	}
	if err := command(conn, "BEGIN"); err != nil {
		d.readers.put(conn)
		return err
	}
	tx := &Tx{conn: conn, ctx: ctx, readOnly: true}
	defer func() {
		tx.end()
		if err := command(conn, "ROLLBACK"); err != nil {
			_ = conn.Close() // the next read opens another
			return
		}
		d.readers.put(conn)
	}()
	return do(tx)
}

// enter waits for a slot. Close waits until leave returns it.
func (d *DB) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-d.closing:
		return errClosed()
	default:
	}
	select {
	case <-d.readers.slots:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-d.closing:
		return errClosed()
	}
}

func (d *DB) leave() { d.readers.slots <- struct{}{} }
