package sqlite

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"

	"zombiezen.com/go/sqlite/sqlitex"
)

// maxGroup is the largest number of changes in one transaction. It limits how long the first of
// them waits.
const maxGroup = 1024

// The states of a change: it waits for the writer, the writer runs it, or its caller has given
// up.
const (
	waiting int32 = iota
	running
	abandoned
)

// change is one call of Write.
type change struct {
	do      func(*Tx) error
	relaxed bool
	fate    atomic.Int32
	done    chan struct{}
	// err and panicked are the result. They are set before done is closed.
	err      error
	panicked any
}

func (c *change) finish(err error) {
	c.err = err
	close(c.done)
}

// Write makes one change. If do returns nil, everything it wrote is on disk
// when Write returns nil. If do returns an error, nothing is written. Changes
// run one after another in the order of the calls, and each sees the changes
// before it.
//
// do may run more than once: if the transaction that it shares with other
// changes fails, each of them gets its own. So its only effects are writes
// through the Tx and assignments that a second run repeats. It must not call
// Write, which would deadlock, nor keep the Tx.
//
// Write returns do's error, or a StoreFull or Unavailable fault if the change was not
// committed. (Only a crash at the moment of a disk error can still make it appear.) It returns
// ctx's error if ctx ended before the change started. A later end of ctx has no effect. Write
// re-raises a panic of do.
func (d *DB) Write(ctx context.Context, do func(*Tx) error) error {
	joint := jointOf(ctx)
	if joint == nil {
		return d.write(ctx, false, do)
	}
	joint.Begin(ctx)
	err := d.write(ctx, false, func(tx *Tx) error {
		if err := do(tx); err != nil {
			return err
		}
		return joint.Write(tx)
	})
	joint.End(err == nil)
	return err
}

// WriteRelaxed is like Write, without an fsync of its own. When it returns, the change is
// visible and survives the end of the process. It is on disk when a later Write returns. A
// crash of the host loses the last changes, never one between others.
func (d *DB) WriteRelaxed(ctx context.Context, do func(*Tx) error) error {
	return d.write(ctx, true, do)
}

func (d *DB) write(ctx context.Context, relaxed bool, do func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := &change{do: do, relaxed: relaxed, done: make(chan struct{})}
	select {
	case d.queue <- c:
	case <-ctx.Done():
		return ctx.Err()
	case <-d.closing:
		return errClosed()
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		if c.fate.CompareAndSwap(waiting, abandoned) {
			return ctx.Err()
		}
		<-c.done
	case <-d.stopped:
		// The writer has stopped: the change is finished or will never run.
		select {
		case <-c.done:
		default:
			return errClosed()
		}
	}
	if c.panicked != nil {
		panic(c.panicked)
	}
	return c.err
}

// run is the loop of the writer.
func (d *DB) run() {
	defer close(d.stopped)
	members := make([]*change, 0, maxGroup)
	var first *change
	for {
		select {
		case <-d.closing:
			return
		default:
		}
		if first == nil {
			select {
			case <-d.closing:
				return
			case first = <-d.queue:
			}
		}
		members, first = d.group(members[:0], first)
		clear(members)
	}
}

// group commits first, and all changes that arrive meanwhile, in one transaction. A relaxed
// change does not wait for the fsync of a later change. group returns that change as left, for
// the next transaction.
func (d *DB) group(members []*change, first *change) (done []*change, left *change) {
	if err := d.begin(first.relaxed); err != nil {
		// The waiting changes would fail the same way, each after a timeout.
		for c := first; c != nil; c = d.next() {
			if c.fate.CompareAndSwap(waiting, running) {
				c.finish(err)
			}
		}
		return members, nil
	}
	var lost error
	for c := first; c != nil && lost == nil; {
		if c.fate.CompareAndSwap(waiting, running) {
			members = append(members, c)
			lost = d.apply(c)
		}
		if c = nil; len(members) < maxGroup && lost == nil {
			if c = d.next(); c == nil {
				// The callers that the last commit released are about to call
				// again. Yielding lets them join this commit.
				runtime.Gosched()
				c = d.next()
			}
			if c != nil && first.relaxed && !c.relaxed {
				c, left = nil, c
			}
		}
	}
	if lost == nil {
		lost = d.commit(members)
	}
	if lost == nil {
		for _, c := range members {
			close(c.done)
		}
		return members, left
	}
	d.abandon()
	if len(members) == 1 {
		members[0].finish(lost)
		return members, left
	}
	// One change must not make the others fail.
	for _, c := range members {
		d.alone(c)
	}
	return members, left
}

// next returns a waiting change, or nil.
func (d *DB) next() *change {
	select {
	case c := <-d.queue:
		return c
	default:
		return nil
	}
}

// alone runs the change in its own transaction.
func (d *DB) alone(c *change) {
	err := d.begin(c.relaxed)
	if err == nil {
		if err = d.apply(c); err == nil {
			err = d.commit([]*change{c})
		}
		if err != nil {
			d.abandon()
		}
	}
	if err != nil {
		c.finish(err)
		return
	}
	close(c.done)
}

// begin begins a transaction. The commit of a transaction that is not relaxed syncs the whole
// log, including the relaxed commits before it.
func (d *DB) begin(relaxed bool) error {
	begin := func() error {
		if err := d.relax(relaxed); err != nil {
			return err
		}
		return command(d.writer, "BEGIN IMMEDIATE")
	}
	if begin() == nil {
		return nil
	}
	// A failed rollback would leave the last transaction open.
	d.abandon()
	if again := begin(); again != nil {
		return fmt.Errorf("cannot begin a transaction: %w", again)
	}
	return nil
}

// relax sets whether commits return before their fsync. It has no effect in a transaction.
func (d *DB) relax(relaxed bool) error {
	if d.relaxed == relaxed {
		return nil
	}
	pragma := "PRAGMA synchronous = FULL"
	if relaxed {
		pragma = "PRAGMA synchronous = NORMAL"
	}
	// SQLite applies it when it prepares the statement, so a cached statement would have no
	// effect.
	if err := sqlitex.ExecuteTransient(d.writer, pragma, nil); err != nil {
		return asFault(err)
	}
	d.relaxed = relaxed
	return nil
}

// apply runs the change in a savepoint and records its result. An error means
// that SQLite rolled back the whole transaction.
func (d *DB) apply(c *change) (lost error) {
	if err := command(d.writer, "SAVEPOINT change"); err != nil {
		return err
	}
	tx := &Tx{conn: d.writer, ctx: context.Background(), observer: d.observing()}
	c.err, c.panicked = nil, nil
	func() {
		defer func() {
			tx.end()
			c.panicked = recover()
		}()
		c.err = c.do(tx)
	}()
	if tx.lost != nil {
		return tx.lost
	}
	if c.err != nil || c.panicked != nil {
		if err := command(d.writer, "ROLLBACK TO change"); err != nil {
			return err
		}
	}
	return command(d.writer, "RELEASE change")
}

// commit makes the changes durable and counts them.
func (d *DB) commit(members []*change) error {
	if err := command(d.writer, "COMMIT"); err != nil {
		return fmt.Errorf("cannot commit: %w", err)
	}
	applied := int64(0)
	for _, c := range members {
		if c.err == nil && c.panicked == nil {
			applied++
		}
	}
	rows := int64(0)
	tx := Tx{conn: d.writer, ctx: context.Background()}
	if err := tx.QueryRow("SELECT total_changes()").Scan(&rows); err == nil && rows != d.rows.Load() {
		d.rows.Store(rows)
		d.commits.Add(1)
		if d.relaxed {
			d.relaxations.Add(1)
		}
		d.changes.Add(applied)
	}
	return nil
}

// abandon rolls the transaction back, unless SQLite already has.
func (d *DB) abandon() {
	_ = command(d.writer, "ROLLBACK")
}
