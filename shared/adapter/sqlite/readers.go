package sqlite

import (
	"context"
	"sync"
)

// snapshots is how many may be open at once. More would only compete for
// the same disk and page cache.
const snapshots = 4

// readers are the places of those who read, and the connections that were made
// for them. The connection that was used last is used first, because it has its
// statements prepared; so there are as many as were ever needed at once.
type readers struct {
	places chan struct{}

	mu   sync.Mutex
	idle []*conn
}

func newReaders() *readers {
	r := &readers{places: make(chan struct{}, snapshots)}
	for range snapshots {
		r.places <- struct{}{}
	}
	return r
}

// leave gives back a place that enter took.
func (r *readers) leave() { r.places <- struct{}{} }

// take gives a connection to who has a place; nil where all that there are are
// in use.
func (r *readers) take() *conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := len(r.idle) - 1
	if last < 0 {
		return nil
	}
	c := r.idle[last]
	r.idle = r.idle[:last]
	return c
}

// give keeps the connection for the next who reads.
func (r *readers) give(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle = append(r.idle, c)
}

// close waits until all places are given back. There are none from then on.
func (r *readers) close() (errs []error) {
	for range snapshots {
		<-r.places
	}
	for c := r.take(); c != nil; c = r.take() {
		errs = append(errs, c.close())
	}
	return errs
}

// Read gives do a view of the database as it is now, which no later change
// disturbs. do must not keep the Tx, and must not write. It waits for one of a
// few connections; a ctx that ends stops the wait, and the query between two
// rows. The error is do's own, or a fault.
func (d *DB) Read(ctx context.Context, do func(*Tx) error) error {
	if err := d.enter(ctx); err != nil {
		return err
	}
	defer d.readers.leave()
	c := d.readers.take()
	if c == nil {
		// Its cache is good until the next commit of the writer, which is soon.
		var err error
		if c, err = connect(ctx, d.path, "PRAGMA query_only = ON", "PRAGMA cache_size = -256"); err != nil {
			return err
		}
	}
	if err := c.command("BEGIN"); err != nil {
		d.readers.give(c)
		return err
	}
	tx := &Tx{conn: c, ctx: ctx, readOnly: true}
	defer func() {
		tx.end()
		if err := c.command("ROLLBACK"); err != nil {
			_ = c.close() // the next reader makes a new one
			return
		}
		d.readers.give(c)
	}()
	return do(tx)
}

// enter takes one of the readers' places, which Close waits for.
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
	case <-d.readers.places:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-d.closing:
		return errClosed()
	}
}
