package sqlite

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
)

// together is how many changes share a transaction at most, so that the first
// of them does not wait for ever.
const together = 1024

// The fates of a change: it waits, the writer has taken it, or its caller has
// left.
const (
	waiting int32 = iota
	taken
	left
)

// change is one call of Write.
type change struct {
	do   func(*Tx) error
	fate atomic.Int32
	done chan struct{}
	// err and panicked are the result, written before done is closed.
	err      error
	panicked any
}

func (c *change) finish(err error) {
	c.err = err
	close(c.done)
}

// Write makes one change: all that do writes, or, where it returns an error,
// nothing. It returns nil after the change is on the disk. Changes run one after
// another, in the order of their calls, and each sees what those before it wrote.
//
// do must have no effect but what it writes through the Tx and what it assigns
// anew each time, because it may be run again: where the transaction that it
// shares with others fails, each of them gets one of its own. It must not call
// Write (which would wait for itself) nor keep the Tx.
//
// The error is do's own; a StoreFull or Unavailable fault where the change
// could not be committed, and then it was not (only a crash in the same moment
// as a failing disk can still make it appear); ctx's error where it ended
// before the change began. A ctx that ends later changes nothing. A panic of do
// comes out of Write.
func (d *DB) Write(ctx context.Context, do func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := &change{do: do, done: make(chan struct{})}
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
		if c.fate.CompareAndSwap(waiting, left) {
			return ctx.Err()
		}
		<-c.done
	case <-d.stopped:
		// The writer has ended: it finished the change before, or never will.
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

// run is the writer.
func (d *DB) run() {
	defer close(d.stopped)
	members := make([]*change, 0, together)
	for {
		select {
		case <-d.closing:
			return
		default:
		}
		select {
		case <-d.closing:
			return
		case first := <-d.queue:
			members = d.group(members[:0], first)
			clear(members)
		}
	}
}

// group commits first, and all that arrive meanwhile, in one transaction.
func (d *DB) group(members []*change, first *change) []*change {
	if err := d.begin(); err != nil {
		// Those who wait already would meet the same, one timeout later each.
		for c := first; c != nil; c = d.next() {
			if c.fate.CompareAndSwap(waiting, taken) {
				c.finish(err)
			}
		}
		return members
	}
	var lost error
	for c := first; c != nil && lost == nil; {
		if c.fate.CompareAndSwap(waiting, taken) {
			members = append(members, c)
			lost = d.apply(c)
		}
		if c = nil; len(members) < together && lost == nil {
			if c = d.next(); c == nil {
				// The writers that the last commit woke are about to call again:
				// let them, and spare each a commit of its own.
				runtime.Gosched()
				c = d.next()
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
		return members
	}
	d.abandon()
	if len(members) == 1 {
		members[0].finish(lost)
		return members
	}
	// One that asks too much must not take the others with it.
	for _, c := range members {
		d.alone(c)
	}
	return members
}

// next gives a change that waits already, nil where there is none.
func (d *DB) next() *change {
	select {
	case c := <-d.queue:
		return c
	default:
		return nil
	}
}

// alone gives the change a transaction of its own.
func (d *DB) alone(c *change) {
	err := d.begin()
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

func (d *DB) begin() error {
	err := command(d.writer, "BEGIN IMMEDIATE")
	if err == nil {
		return nil
	}
	// A rollback that failed would leave the last transaction open.
	d.abandon()
	if again := command(d.writer, "BEGIN IMMEDIATE"); again != nil {
		return fmt.Errorf("cannot begin a transaction: %w", again)
	}
	return nil
}

// apply runs the change in a savepoint and notes its result. An error means
// that the transaction is lost.
func (d *DB) apply(c *change) (lost error) {
	if err := command(d.writer, "SAVEPOINT change"); err != nil {
		return err
	}
	tx := &Tx{conn: d.writer, ctx: context.Background()}
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

// commit makes durable what the changes wrote and counts it.
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
		d.changes.Add(applied)
	}
	return nil
}

// abandon ends the transaction, which SQLite may have done by itself.
func (d *DB) abandon() {
	_ = command(d.writer, "ROLLBACK")
}
