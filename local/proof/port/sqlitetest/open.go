// Package sqlitetest opens databases for tests whose subject is not the database. Each is a copy
// of one file with the tables of the store and the feed, because creating the tables takes longer
// than most tests. In a folder in memory, commits do not wait for the disk.
package sqlitetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// memory is a file system in memory on Linux.
const memory = "/dev/shm"

// Folder returns a folder for a database, in memory where possible. It is removed when the test
// ends.
func Folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(memory, "sortie-test-") //nolint:usetesting // t.TempDir is on the disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Open opens the database at path. A file that does not exist yet gets the empty tables of a
// sqlite.Store and a sqlite.Feed.
func Open(ctx context.Context, path string) (*sqlite.DB, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		file, err := empty()
		if err == nil {
			err = os.WriteFile(path, file, 0o600)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot create the tables of %s: %w", path, err)
		}
	}
	return sqlite.Open(ctx, path)
}

// empty returns the file with empty tables.
var empty = sync.OnceValues(func() (file []byte, err error) {
	dir, err := os.MkdirTemp("", "sortie-tables-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path, ctx := filepath.Join(dir, "sortie.db"), context.Background()
	db, err := sqlite.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	_, err = sqlite.NewStore(ctx, db, clock.System{})
	if err == nil {
		_, err = sqlite.NewFeed(ctx, db, sqlite.FeedConfig{Clock: clock.System{}, Retention: time.Hour})
	}
	if err = errors.Join(err, db.Close()); err != nil { // Close checkpoints the write-ahead log
		return nil, err
	}
	return os.ReadFile(path) //nolint:gosec // the path is from MkdirTemp
})
