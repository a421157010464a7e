package sqlite

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

var (
	// ErrInUse means that another process, or another DB of this process, has the lock.
	ErrInUse = errors.New("in use by another sortie")
	// ErrNewer means that a newer version wrote the file. Nothing was changed.
	ErrNewer = errors.New("written by a newer version of sortie")
	// ErrDamaged means that the file is damaged, or not an SQLite database.
	ErrDamaged = errors.New("damaged or not a database")
	// ErrNoRow means that a query for one row returned none.
	ErrNoRow = errors.New("no such row")
)

// asFault converts an error of SQLite to a fault. It returns errors in our own SQL unchanged.
func asFault(err error) error {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultFull:
		return fault.Wrap(err, fault.StoreFull, "the disk is full; nothing was changed")
	case sqlite.ResultBusy, sqlite.ResultLocked:
		return fault.Wrap(err, fault.Unavailable, "the database is locked by another program")
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
		return fault.Wrap(fmt.Errorf("%w: %w", ErrDamaged, err), fault.Internal, "the database is damaged; restore a backup")
	case sqlite.ResultIOErr, sqlite.ResultCantOpen, sqlite.ResultReadOnly, sqlite.ResultPerm, sqlite.ResultNoLFS:
		return fault.Wrap(err, fault.Unavailable, "the database file cannot be read or written")
	case sqlite.ResultNoMem:
		return fault.Wrap(err, fault.Unavailable, "out of memory for the database")
	case sqlite.ResultInterrupt:
		return fault.Wrap(err, fault.Unavailable, "the query was interrupted")
	}
	return err
}
