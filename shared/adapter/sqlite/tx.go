package sqlite

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"zombiezen.com/go/sqlite"
)

// Tx is one transaction, valid until the function that received it returns. It
// is not safe for concurrent use. Statements are prepared once per connection
// and cached by their text, so the text contains '?' for values and never the
// values themselves.
//
// Values are nil, strings, integers, floats, booleans, bytes, and named types
// and pointers of these. Times are stored as numbers that the caller chooses.
type Tx struct {
	conn     *sqlite.Conn
	ctx      context.Context
	readOnly bool
	observer func(Statement) // nil observes nothing
	open     []*Rows
	// lost is the error with which SQLite rolled back the whole transaction, as it may on a
	// full disk. A later statement would commit by itself.
	lost error
}

// Exec runs one statement and returns how many rows it inserted, updated or
// deleted.
func (t *Tx) Exec(query string, args ...any) (int64, error) {
	if t.readOnly {
		return 0, fmt.Errorf("cannot run %q: the transaction is read-only", query)
	}
	rows := t.Query(query, args...)
	for rows.Next() {
	}
	return int64(t.conn.Changes()), rows.Err()
}

// Query runs one statement that returns rows. Rows.Err returns its error.
func (t *Tx) Query(query string, args ...any) *Rows {
	rows := &Rows{tx: t, query: query, err: t.lost}
	if t.lost != nil {
		return rows
	}
	if rows.stmt, rows.err = t.prepare(rows); rows.err != nil {
		return rows
	}
	for i, arg := range args {
		if err := bind(rows.stmt, i+1, arg); err != nil {
			rows.fail(fmt.Errorf("argument %d: %w", i+1, err))
			return rows
		}
	}
	if t.observer != nil {
		observed(rows.stmt, query) // resets the counters
	}
	t.open = append(t.open, rows)
	return rows
}

// prepare returns the cached statement, or a new one for a query inside the rows of the same
// query.
func (t *Tx) prepare(rows *Rows) (stmt *sqlite.Stmt, err error) {
	rows.nested = slices.ContainsFunc(t.open, func(r *Rows) bool { return r.query == rows.query })
	if rows.nested {
		stmt, _, err = t.conn.PrepareTransient(rows.query)
	} else {
		stmt, err = t.conn.Prepare(rows.query)
	}
	return stmt, asFault(err)
}

// QueryRow runs a query and reads only its first row.
func (t *Tx) QueryRow(query string, args ...any) Row { return Row{t.Query(query, args...)} }

// end closes the rows that the function left open.
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
	stmt   *sqlite.Stmt // nil after Close
	nested bool
	err    error
}

// Next advances to the next row. It returns false at the end or after an
// error, and then the rows are closed.
func (r *Rows) Next() bool {
	if r.stmt == nil {
		return false
	}
	if err := r.tx.ctx.Err(); err != nil {
		r.fail(err)
		return false
	}
	more, err := r.stmt.Step()
	if err != nil {
		r.fail(err)
		return false
	}
	if !more {
		r.Close()
	}
	return more
}

func (r *Rows) fail(err error) {
	r.err = fmt.Errorf("cannot run %q: %w", r.query, asFault(err))
	if r.tx.conn.AutocommitEnabled() {
		r.tx.lost = r.err
	}
	r.Close()
}

// Scan copies the columns of the row into the variables that the pointers
// address, one for each column. NULL needs a pointer to a pointer or a *[]byte.
func (r *Rows) Scan(into ...any) error {
	if columns := r.stmt.ColumnCount(); len(into) != columns {
		return fmt.Errorf("cannot scan the row of %q: got %d variables, want %d", r.query, len(into), columns)
	}
	for i, each := range into {
		if err := scan(r.stmt, i, each); err != nil {
			return fmt.Errorf("cannot scan column %d of %q: %w", i+1, r.query, err)
		}
	}
	return nil
}

// Err returns the error that ended the rows, or nil after the last row.
func (r *Rows) Err() error { return r.err }

// Close ends the query. It is idempotent; the end of the transaction closes
// rows that are still open.
func (r *Rows) Close() {
	if r.stmt == nil {
		return
	}
	if r.tx.observer != nil {
		r.tx.observer(observed(r.stmt, r.query))
	}
	if r.nested {
		_ = r.stmt.Finalize() // repeats the error of Step
	} else {
		_ = r.stmt.Reset()
	}
	r.stmt = nil
	if i := slices.Index(r.tx.open, r); i >= 0 {
		r.tx.open = slices.Delete(r.tx.open, i, i+1)
	}
}

// Row is the one row of a query.
type Row struct{ rows *Rows }

// Scan copies the columns of the row as Rows.Scan does. It returns ErrNoRow if the query has no
// rows.
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
	// A statement with RETURNING has to run to its end.
	for r.rows.Next() {
	}
	return r.rows.Err()
}

// bind sets the parameter i, from 1, of the statement.
func bind(s *sqlite.Stmt, i int, arg any) error {
	switch v := arg.(type) {
	case nil:
		s.BindNull(i)
		return nil
	case []byte:
		if v == nil {
			s.BindNull(i)
		} else {
			s.BindBytes(i, v)
		}
		return nil
	}
	switch v := reflect.ValueOf(arg); v.Kind() {
	case reflect.String:
		s.BindText(i, v.String())
	case reflect.Bool:
		s.BindBool(i, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		s.BindInt64(i, v.Int())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		s.BindInt64(i, int64(v.Uint())) //nolint:gosec // at most 32 bits
	case reflect.Float32, reflect.Float64:
		s.BindFloat(i, v.Float())
	case reflect.Pointer:
		if v.IsNil() {
			s.BindNull(i)
			return nil
		}
		return bind(s, i, v.Elem().Interface())
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			return fmt.Errorf("got a %T, want a string, number, boolean or bytes", arg)
		}
		return bind(s, i, v.Bytes())
	default:
		return fmt.Errorf("got a %T, want a string, number, boolean or bytes", arg)
	}
	return nil
}

// scan copies the column i, from 0, to the variable that into addresses.
func scan(s *sqlite.Stmt, i int, into any) error {
	p := reflect.ValueOf(into)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return fmt.Errorf("got a %T, want a pointer", into)
	}
	to, from := p.Elem(), s.ColumnType(i)
	isBytes := to.Kind() == reflect.Slice && to.Type().Elem().Kind() == reflect.Uint8
	switch {
	case from == sqlite.TypeNull && (to.Kind() == reflect.Pointer || isBytes):
		to.SetZero()
	case to.Kind() == reflect.Pointer:
		fresh := reflect.New(to.Type().Elem())
		if err := scan(s, i, fresh.Interface()); err != nil {
			return err
		}
		to.Set(fresh)
	case isBytes && (from == sqlite.TypeText || from == sqlite.TypeBlob):
		bytes := make([]byte, s.ColumnLen(i))
		s.ColumnBytes(i, bytes)
		to.SetBytes(bytes)
	case to.Kind() == reflect.String && (from == sqlite.TypeText || from == sqlite.TypeBlob):
		to.SetString(s.ColumnText(i))
	case from == sqlite.TypeInteger && to.CanInt() && !to.OverflowInt(s.ColumnInt64(i)):
		to.SetInt(s.ColumnInt64(i))
	case from == sqlite.TypeInteger && to.Kind() == reflect.Bool:
		to.SetBool(s.ColumnBool(i))
	case (from == sqlite.TypeInteger || from == sqlite.TypeFloat) && to.CanFloat():
		to.SetFloat(s.ColumnFloat(i))
	default:
		return fmt.Errorf("got %s, want a value for a %s", from, to.Type())
	}
	return nil
}
