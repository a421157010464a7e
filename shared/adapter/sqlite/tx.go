package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Tx is the database as a change or a read sees it, valid until the function
// that got it returns. It is not safe for use by many goroutines. Statements
// are prepared once per connection and found again by their text, so the text
// has '?' for values and never the values themselves.
//
// Values may be nil, strings, integers, floats, booleans, bytes, and types
// made of these; times are stored as numbers that the caller chooses.
type Tx struct {
	conn     *conn
	ctx      context.Context
	readOnly bool
	open     []*Rows
	// ruin is the error after which the transaction cannot go on, even where
	// the change ignores it.
	ruin error
}

// Exec runs one statement and tells how many rows it inserted, updated or
// deleted.
func (t *Tx) Exec(query string, args ...any) (int64, error) {
	if t.readOnly {
		return 0, fmt.Errorf("cannot run %q: this transaction only reads", query)
	}
	if t.ruin != nil {
		return 0, t.ruin
	}
	changed, err := t.conn.exec(query, args)
	return changed, t.note(err)
}

// Query runs one statement that has rows. An error shows in Rows.Err.
func (t *Tx) Query(query string, args ...any) *Rows {
	if t.ruin != nil {
		return &Rows{err: t.ruin}
	}
	from, s, err := t.conn.query(query, args)
	if err != nil {
		return &Rows{err: t.note(err)}
	}
	rows := &Rows{tx: t, query: query, from: from, s: s, values: make([]driver.Value, len(from.Columns()))}
	t.open = append(t.open, rows)
	return rows
}

// QueryRow is Query for the first row alone.
func (t *Tx) QueryRow(query string, args ...any) Row { return Row{t.Query(query, args...)} }

func (t *Tx) note(err error) error {
	if err != nil && ruinous(err) {
		t.ruin = err
	}
	return err
}

// end closes what the function left open.
func (t *Tx) end() {
	for len(t.open) > 0 {
		t.open[len(t.open)-1].Close()
	}
}

// Rows are the rows of a query:
//
//	rows := tx.Query("SELECT id, state FROM runs WHERE pool = ?", pool)
//	for rows.Next() {
//		if err := rows.Scan(&id, &state); err != nil {
//			return err
//		}
//	}
//	return rows.Err()
type Rows struct {
	tx     *Tx
	query  string
	from   driver.Rows
	s      statement
	values []driver.Value
	err    error
}

// Next goes on to the next row; false at the end or after an error, which
// closes the rows.
func (r *Rows) Next() bool {
	if r.from == nil {
		return false
	}
	if err := r.tx.ctx.Err(); err != nil {
		r.err = err
		r.Close()
		return false
	}
	err := r.from.Next(r.values)
	if err == nil {
		return true
	}
	if !errors.Is(err, io.EOF) {
		r.err = r.tx.note(fmt.Errorf("cannot run %q: %w", r.query, named(err)))
	}
	r.Close()
	return false
}

// Scan copies the row's columns to where the pointers point, one for each
// column. NULL goes into a pointer to a pointer, a *[]byte or a sql.Scanner.
func (r *Rows) Scan(into ...any) error {
	if len(into) != len(r.values) {
		return fmt.Errorf("cannot scan the row of %q: it has %d columns, not %d", r.query, len(r.values), len(into))
	}
	for i, each := range into {
		if err := assign(each, r.values[i]); err != nil {
			return fmt.Errorf("cannot scan column %d of %q: %w", i+1, r.query, err)
		}
	}
	return nil
}

// Err is the error that ended the rows; nil where they were read to the end.
func (r *Rows) Err() error { return r.err }

// Close gives the statement free. It may be called at any time, and need not
// be called.
func (r *Rows) Close() {
	if r.from == nil {
		return
	}
	if err := r.from.Close(); err != nil && r.err == nil {
		r.err = r.tx.note(fmt.Errorf("cannot run %q: %w", r.query, named(err)))
	}
	r.from = nil
	r.tx.conn.give(r.query, r.s)
	for i, v := range slices.Backward(r.tx.open) {
		if v == r {
			r.tx.open = append(r.tx.open[:i], r.tx.open[i+1:]...)
			return
		}
	}
}

// Row is the one row of a query.
type Row struct{ rows *Rows }

// Scan is Rows.Scan. ErrNoRow where there is none.
func (r Row) Scan(into ...any) error {
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return ErrNoRow
	}
	if err := r.rows.Scan(into...); err != nil {
		return err
	}
	// A statement that changes rows has to be run to its end.
	for r.rows.Next() {
	}
	return r.rows.Err()
}
