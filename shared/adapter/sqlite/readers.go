package sqlite

import (
	"context"
	"runtime"
	"sync"

	"zombiezen.com/go/sqlite"
)

// snapshots is how many reads may run at once. More would only compete for the
// same disk and page cache.
const snapshots = 4

// readers are the goroutines that read, each with a connection of its own. The goroutine used
// last is used first, because its statements are prepared. So there are only as many as were
// needed at once. (sqlitex.Pool rotates through all of its connections and starts a goroutine
// per read, which makes a short read half as fast.) A query needs 64 KiB of stack. A caller
// that waits for long, such as a reader of a stream, does not keep that stack.
type readers struct {
	slots chan struct{} // has a value for each read that may start
	mu    sync.Mutex
	idle  []*reader
}

func newReaders() *readers {
	r := &readers{slots: make(chan struct{}, snapshots)}
	for range snapshots {
		r.slots <- struct{}{}
	}
	return r
}

// take returns an idle reader, or nil if all are in use. The caller has a slot.
func (r *readers) take() *reader {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := len(r.idle) - 1
	if last < 0 {
		return nil
	}
	free := r.idle[last]
	r.idle = r.idle[:last]
	return free
}

func (r *readers) put(free *reader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle = append(r.idle, free)
}

// close waits until all reads have ended. No read starts after it.
func (r *readers) close() (errs []error) {
	for range snapshots {
		<-r.slots
	}
	for _, free := range r.idle {
		close(free.work)
		<-free.done
		errs = append(errs, free.conn.Close())
	}
	return errs
}

// reader is a goroutine that reads.
type reader struct {
	conn *sqlite.Conn
	work chan reading
	done chan ending // closed at the end of the goroutine
}

// reading is one call of Read.
type reading struct {
	ctx context.Context //nolint:containedctx // of the call, which waits for the end
	do  func(*Tx) error
	// observer is that of the transaction.
	observer func(Statement)
}

// ending is the way in which a read transaction ended.
type ending struct {
	err      error
	panicked any
	// lost means that the reader must not be used again.
	lost bool
}

func (r *reader) run() {
	defer close(r.done)
	for next := range r.work {
		r.done <- r.read(next)
	}
}

// read calls do in a transaction and rolls it back.
func (r *reader) read(next reading) (end ending) {
	if err := command(r.conn, "BEGIN"); err != nil {
		return ending{err: err}
	}
	tx := &Tx{conn: r.conn, ctx: next.ctx, readOnly: true, observer: next.observer}
	defer func() {
		end.panicked = recover()
		tx.end()
		if err := command(r.conn, "ROLLBACK"); err != nil {
			end.lost = true // the next read opens another
		}
	}()
	return ending{err: next.do(tx)}
}

// Read calls do with a read-only transaction on a snapshot of the database that includes every
// change acknowledged before the call. do runs in another goroutine and must not keep the Tx.
// Read waits for one of a few connections. The end of ctx stops the wait, and a query between
// two rows. Read returns do's error, ctx's error, or a fault. It re-raises a panic of do, and
// its runtime.Goexit.
func (d *DB) Read(ctx context.Context, do func(*Tx) error) error {
	if err := d.enter(ctx); err != nil {
		return err
	}
	defer d.leave()
	free := d.readers.take()
	if free == nil {
		// A reader's cache is valid until the next commit only, hence its size.
		conn, err := connect(d.path, "PRAGMA query_only = ON", "PRAGMA cache_size = -256")
		if err != nil {
			return err
		}
		free = &reader{conn: conn, work: make(chan reading), done: make(chan ending)}
		go free.run()
	}
	free.work <- reading{ctx: ctx, do: do, observer: d.observing()}
	end, ok := <-free.done
	switch {
	case !ok: // do has ended the goroutine
		_ = free.conn.Close()
		runtime.Goexit()
	case end.lost:
		close(free.work)
		<-free.done
		_ = free.conn.Close() // the read itself has ended
	default:
		d.readers.put(free)
	}
	if end.panicked != nil {
		panic(end.panicked)
	}
	return end.err
}

// enter waits for a slot for a read. Close waits until leave returns the slot.
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
