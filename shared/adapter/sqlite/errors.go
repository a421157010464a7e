package sqlite

import (
	"errors"
	"fmt"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/sortie-dev/sortie/shared/fault"
)

var (
	// ErrInUse: another process, or another DB of this one, holds the file.
	ErrInUse = errors.New("another sortie is using it")
	// ErrNewer: the file was written by a newer program; nothing was touched.
	ErrNewer = errors.New("it was written by a newer version of sortie")
	// ErrDamaged: the file is no SQLite database, or a damaged one. A backup
	// is what helps.
	ErrDamaged = errors.New("it is damaged or not a database")
	// ErrNoRow is Row.Scan's answer where the query had none.
	ErrNoRow = errors.New("no such row")
)

// named turns an error of SQLite into a fault that says what happened and what
// helps. Errors in our own SQL stay what they are.
func named(err error) error {
	var from *driver.Error
	if !errors.As(err, &from) {
		return err
	}
	switch from.Code() & 0xff {
	case codes.SQLITE_FULL:
		return fault.Wrap(err, fault.StoreFull, "the disk has no room left for the database; nothing was changed")
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
		return fault.Wrap(err, fault.Unavailable, "the database is locked by another program")
	case codes.SQLITE_CORRUPT, codes.SQLITE_NOTADB:
		return fault.Wrap(fmt.Errorf("%w: %w", ErrDamaged, err), fault.Internal, "the database is damaged; restore a backup")
	case codes.SQLITE_IOERR, codes.SQLITE_CANTOPEN, codes.SQLITE_READONLY, codes.SQLITE_PERM, codes.SQLITE_NOLFS:
		return fault.Wrap(err, fault.Unavailable, "the disk does not let the database be read or written")
	case codes.SQLITE_NOMEM:
		return fault.Wrap(err, fault.Unavailable, "there is no memory left for the database")
	case codes.SQLITE_INTERRUPT:
		return fault.Wrap(err, fault.Unavailable, "the query was interrupted")
	}
	return err
}

// ruinous says whether SQLite may have rolled back more than the statement
// that failed, so that the whole transaction has to be given up.
func ruinous(err error) bool {
	var from *driver.Error
	if !errors.As(err, &from) {
		return false
	}
	switch from.Code() & 0xff {
	case codes.SQLITE_FULL, codes.SQLITE_IOERR, codes.SQLITE_NOMEM, codes.SQLITE_BUSY,
		codes.SQLITE_CORRUPT, codes.SQLITE_INTERRUPT, codes.SQLITE_READONLY:
		return true
	}
	return false
}
