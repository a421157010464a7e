package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite/sqlitex"
)

// Backup writes a consistent copy of the database, as it is now, to the file
// dst, while readers and writers go on. dst must not exist (fs.ErrExist); it
// appears whole or not at all, and only its owner can read it. A ctx that ends
// stops the copy.
func (d *DB) Backup(ctx context.Context, dst string) error {
	if err := d.enter(ctx); err != nil {
		return fmt.Errorf("cannot back up the database to %s: %w", dst, err)
	}
	defer d.leave()
	return BackupFile(ctx, d.path, dst)
}

// BackupFile is Backup of a file that another process may have open, or nobody:
// everything that was committed before the call is in the copy. It needs no
// Open, and does not keep anyone else from it: SQLite has its own locks, and a
// snapshot for each reader. What a process that was killed has left in the
// write-ahead log is part of the copy, and may be put in its place on the way.
// fs.ErrNotExist where there is no such file, ErrDamaged where it is no SQLite
// database.
func BackupFile(ctx context.Context, path, dst string) error {
	if err := copyTo(ctx, path, dst); err != nil {
		return fmt.Errorf("cannot back up the database to %s: %w", dst, err)
	}
	return nil
}

func copyTo(ctx context.Context, path, dst string) (err error) {
	// SQLite would make a file that is missing.
	if _, err := os.Stat(path); err != nil {
		return err
	}
	if _, err := os.Lstat(dst); err == nil {
		return fs.ErrExist
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	partial, err := os.CreateTemp(filepath.Dir(dst), "."+filepath.Base(dst)+".*.partial")
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, partial.Close())
		for _, name := range []string{partial.Name(), partial.Name() + "-journal"} {
			if failed := os.Remove(name); !errors.Is(failed, fs.ErrNotExist) {
				err = errors.Join(err, failed)
			}
		}
	}()
	if err := vacuumInto(ctx, path, partial.Name()); err != nil {
		return err
	}
	if err := partial.Sync(); err != nil {
		return err
	}
	// A link, unlike a rename, never replaces a file that appeared meanwhile.
	if err := os.Link(partial.Name(), dst); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(dst))
}

func vacuumInto(ctx context.Context, path, into string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	conn, err := connect(path)
	if err != nil {
		return err
	}
	conn.SetInterrupt(ctx.Done())
	err = sqlitex.Execute(conn, "VACUUM INTO ?", &sqlitex.ExecOptions{Args: []any{into}})
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return errors.Join(named(err), conn.Close())
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
