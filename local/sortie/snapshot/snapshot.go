// Package snapshot copies a SQLite file that another process uses.
//
// It promises a copy of one moment, with everything that was committed before
// it, whole or not at all, and never in the place of another file; and that the
// process that uses the file goes on meanwhile. It refuses nothing that SQLite
// can read: whose file it is, and of which version, is not its business.
package snapshot

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // registers the driver
)

// Copy writes the database in source to the file target, which must not exist
// (fs.ErrExist). A ctx that ends stops it.
func Copy(ctx context.Context, source, target string) error {
	if err := toFile(ctx, source, target); err != nil {
		return fmt.Errorf("cannot copy %s to %s: %w", source, target, err)
	}
	return nil
}

func toFile(ctx context.Context, source, target string) (err error) {
	if _, err := os.Lstat(target); err == nil {
		return fs.ErrExist
	}
	dir, err := os.MkdirTemp(filepath.Dir(target), "."+filepath.Base(target)+".*.partial")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	partial := filepath.Join(dir, "copy")
	if err := vacuum(ctx, source, partial); err != nil {
		return err
	}
	if err := os.Chmod(partial, 0o600); err != nil { // it holds tokens
		return err
	}
	if err := syncFile(partial); err != nil {
		return err
	}
	// A link, unlike a rename, never replaces a file that appeared meanwhile.
	if err := os.Link(partial, target); err != nil {
		return err
	}
	return syncFile(filepath.Dir(target))
}

// vacuum lets SQLite write the copy: it reads under a snapshot of its own.
func vacuum(ctx context.Context, source, copied string) error {
	path, err := filepath.Abs(source)
	if err != nil {
		return err
	}
	where := url.URL{Scheme: "file", Path: path, RawQuery: "mode=rw&_pragma=busy_timeout(5000)"}
	db, err := sql.Open("sqlite", where.String())
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", copied)
	return errors.Join(err, db.Close())
}

func syncFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
