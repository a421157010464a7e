package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"

	sqlite "modernc.org/sqlite"
)

// statement is what the driver's statements can do. The driver is used without
// database/sql, whose locks and conversions cost as much as the statements.
type statement interface {
	driver.StmtExecContext
	driver.StmtQueryContext
	Close() error
}

// conn is one connection with its prepared statements. It is used by one
// goroutine at a time.
type conn struct {
	raw driver.Conn
	// ready has the statements that no rows are being read from. A list,
	// because a query may run inside of a loop over the same query.
	ready map[string][]statement
	args  []driver.NamedValue
}

// connect opens a connection and runs the statements on it.
func connect(ctx context.Context, path string, setup ...string) (*conn, error) {
	connector, err := sqlite.NewConnector((&url.URL{Scheme: "file", Path: path}).String())
	if err != nil {
		return nil, err
	}
	raw, err := connector.Connect(ctx)
	if err != nil {
		return nil, named(err)
	}
	c := &conn{raw: raw, ready: map[string][]statement{}}
	setup = append([]string{
		"PRAGMA busy_timeout = 5000",
		"PRAGMA synchronous = FULL",
		"PRAGMA foreign_keys = ON",
		"PRAGMA temp_store = MEMORY",
		"PRAGMA cache_size = -2048",            // KiB; the driver takes twice that
		"PRAGMA wal_autocheckpoint = 4000",     // pages: 16 MiB
		"PRAGMA journal_size_limit = 67108864", // bytes
	}, setup...)
	for _, each := range setup {
		if err := c.script(each); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

// take gives a statement that the caller owns until it is given back.
func (c *conn) take(query string) (statement, error) {
	if ready := c.ready[query]; len(ready) > 0 {
		last := len(ready) - 1
		c.ready[query] = ready[:last]
		return ready[last], nil
	}
	prepared, err := c.raw.Prepare(query)
	if err != nil {
		return nil, fmt.Errorf("cannot prepare %q: %w", query, named(err))
	}
	s, ok := prepared.(statement)
	if !ok {
		return nil, errors.Join(fmt.Errorf("cannot prepare %q: the driver has no such statement", query), prepared.Close())
	}
	return s, nil
}

func (c *conn) give(query string, s statement) { c.ready[query] = append(c.ready[query], s) }

// exec runs one statement and tells how many rows it changed.
func (c *conn) exec(query string, args []any) (int64, error) {
	s, err := c.take(query)
	if err != nil {
		return 0, err
	}
	defer c.give(query, s)
	if c.args, err = bind(c.args[:0], args); err != nil {
		return 0, fmt.Errorf("cannot run %q: %w", query, err)
	}
	result, err := s.ExecContext(context.Background(), c.args)
	if err != nil {
		return 0, fmt.Errorf("cannot run %q: %w", query, named(err))
	}
	return result.RowsAffected()
}

// query begins to read; the statement comes back when the rows are closed.
func (c *conn) query(query string, args []any) (driver.Rows, statement, error) {
	s, err := c.take(query)
	if err != nil {
		return nil, nil, err
	}
	if c.args, err = bind(c.args[:0], args); err != nil {
		c.give(query, s)
		return nil, nil, fmt.Errorf("cannot run %q: %w", query, err)
	}
	rows, err := s.QueryContext(context.Background(), c.args)
	if err != nil {
		c.give(query, s)
		return nil, nil, fmt.Errorf("cannot run %q: %w", query, named(err))
	}
	return rows, s, nil
}

// command runs a statement of ours that has no arguments, such as COMMIT.
func (c *conn) command(query string) error {
	s, err := c.take(query)
	if err != nil {
		return err
	}
	defer c.give(query, s)
	_, err = s.ExecContext(context.Background(), nil)
	return named(err)
}

// script runs statements that are not worth keeping prepared.
func (c *conn) script(text string) error {
	s, err := c.raw.Prepare(text)
	if err != nil {
		return named(err)
	}
	run, ok := s.(driver.StmtExecContext)
	if !ok {
		return errors.Join(errors.New("the driver cannot run statements"), s.Close())
	}
	_, err = run.ExecContext(context.Background(), nil)
	return named(errors.Join(err, s.Close()))
}

// pagesWritten is how many pages went to the log so far.
func (c *conn) pagesWritten() int64 {
	status, ok := c.raw.(sqlite.DBStatus)
	if !ok {
		return 0
	}
	pages, _, err := status.Status(sqlite.DBStatusCacheWrite, false)
	if err != nil {
		return 0
	}
	return int64(pages)
}

func (c *conn) close() error {
	var errs []error
	for _, ready := range c.ready {
		for _, s := range ready {
			errs = append(errs, s.Close())
		}
	}
	c.ready = nil
	return errors.Join(append(errs, c.raw.Close())...)
}
