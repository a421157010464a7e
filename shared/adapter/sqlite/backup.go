package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Backup writes a consistent copy of the database, as it is now, to the file
// dst, while readers and writers go on. dst must not exist (fs.ErrExist); it
// appears whole or not at all. A ctx that ends stops the copy.
func (d *DB) Backup(ctx context.Context, dst string) error {
	if err := d.backup(ctx, dst); err != nil {
		return fmt.Errorf("cannot back up the database to %s: %w", dst, err)
	}
	return nil
}

func (d *DB) backup(ctx context.Context, dst string) error {
	place, err := d.borrow(ctx)
	if err != nil {
		return err
	}
	defer func() { d.idle <- place }()
	if _, err := os.Lstat(dst); err == nil {
		return fs.ErrExist
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.copyTo(ctx, dst)
}

func (d *DB) copyTo(ctx context.Context, dst string) (err error) {
	partial, err := os.CreateTemp(filepath.Dir(dst), "."+filepath.Base(dst)+".*.partial")
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, partial.Close())
		if failed := os.Remove(partial.Name()); !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}()
	if err := d.vacuumInto(ctx, partial.Name()); err != nil {
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

func (d *DB) vacuumInto(ctx context.Context, path string) error {
	c, err := connect(ctx, d.path)
	if err != nil {
		return err
	}
	s, err := c.take("VACUUM INTO ?")
	if err != nil {
		return errors.Join(err, c.close())
	}
	_, err = s.ExecContext(ctx, []driver.NamedValue{{Ordinal: 1, Value: path}})
	return errors.Join(named(err), s.Close(), c.close())
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
