package sqlite

import (
	"errors"
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// connect opens a connection to an existing file and runs the pragmas on it.
func connect(path string, pragmas ...string) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, asFault(err)
	}
	conn.SetBusyTimeout(5 * time.Second)
	if err := errors.Join(addRecords(conn), addHistory(conn)); err != nil {
		return nil, errors.Join(asFault(err), conn.Close())
	}
	for _, pragma := range append([]string{
		"PRAGMA synchronous = FULL",
		"PRAGMA foreign_keys = ON",
		"PRAGMA temp_store = MEMORY",
		"PRAGMA wal_autocheckpoint = 4000",     // pages: 16 MiB
		"PRAGMA journal_size_limit = 67108864", // bytes
	}, pragmas...) {
		if err := sqlitex.ExecuteTransient(conn, pragma, nil); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot run %q: %w", pragma, asFault(err)), conn.Close())
		}
	}
	return conn, nil
}

// command runs a statement without arguments, such as COMMIT.
func command(conn *sqlite.Conn, query string) error {
	return asFault(sqlitex.Execute(conn, query, nil))
}
