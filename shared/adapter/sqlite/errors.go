package sqlite

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

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
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultFull:
		return fault.Wrap(err, fault.StoreFull, "the disk has no room left for the database; nothing was changed")
	case sqlite.ResultBusy, sqlite.ResultLocked:
		return fault.Wrap(err, fault.Unavailable, "the database is locked by another program")
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
		return fault.Wrap(fmt.Errorf("%w: %w", ErrDamaged, err), fault.Internal, "the database is damaged; restore a backup")
	case sqlite.ResultIOErr, sqlite.ResultCantOpen, sqlite.ResultReadOnly, sqlite.ResultPerm, sqlite.ResultNoLFS:
		return fault.Wrap(err, fault.Unavailable, "the disk does not let the database be read or written")
	case sqlite.ResultNoMem:
		return fault.Wrap(err, fault.Unavailable, "there is no memory left for the database")
	case sqlite.ResultInterrupt:
		return fault.Wrap(err, fault.Unavailable, "the query was interrupted")
	}
	return err
}
