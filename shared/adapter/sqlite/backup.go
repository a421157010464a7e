package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Backup writes a consistent copy of the database to the file dst while readers and writers
// continue. The streams of the copy have new epochs. It returns fs.ErrExist if dst exists. dst
// appears complete or not at all, with mode 0600. The end of ctx stops the copy.
func (d *DB) Backup(ctx context.Context, dst string) error {
	if err := d.enter(ctx); err != nil {
		return fmt.Errorf("cannot back up the database to %s: %w", dst, err)
	}
	defer d.leave()
	return BackupFile(ctx, d.path, dst)
}

// BackupFile is like Backup, for a file that no DB, or a DB of another process, has open. The
// copy has everything committed before the call. BackupFile takes no lock that stops Open. It
// includes the write-ahead log of a killed process, and may checkpoint the log. It returns
// fs.ErrNotExist if the file does not exist, and ErrDamaged if it is not an SQLite database.
func BackupFile(ctx context.Context, path, dst string) error {
	if err := copyTo(ctx, path, dst); err != nil {
		return fmt.Errorf("cannot back up the database to %s: %w", dst, err)
	}
	return nil
}

func copyTo(ctx context.Context, path, dst string) (err error) {
	// SQLite would create a missing file.
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
	if err := renewEpochs(partial.Name()); err != nil {
		return err
	}
	if err := partial.Sync(); err != nil {
		return err
	}
	// A link, unlike a rename, never replaces a file that another process
	// created.
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
	return errors.Join(asFault(err), conn.Close())
}

// renewEpochs gives the streams of a copy new epochs. The streams of a restored copy reuse
// positions that the original has given to other records.
func renewEpochs(path string) error {
	conn, err := connect(path)
	if err != nil {
		return err
	}
	feed := false
	err = sqlitex.Execute(conn, "SELECT 1 FROM sqlite_schema WHERE name = 'feed_streams'", &sqlitex.ExecOptions{
		ResultFunc: func(*sqlite.Stmt) error { feed = true; return nil },
	})
	if err == nil && feed {
		err = sqlitex.Execute(conn, "UPDATE feed_streams SET epoch = lower(hex(randomblob(8)))", nil)
	}
	return errors.Join(asFault(err), conn.Close())
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
