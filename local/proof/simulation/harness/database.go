package harness

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// memoryDir is a file system in memory on Linux.
const memoryDir = "/dev/shm"

// WithTempDir calls do with a temporary folder, in memory where possible. Durability on disk
// does not matter, because processes crash here, but never the host.
func WithTempDir(do func(dir string) error) error {
	dir, err := os.MkdirTemp(memoryDir, "sortie-simulation-")
	if err != nil {
		dir, err = os.MkdirTemp("", "sortie-simulation-")
	}
	if err != nil {
		return err
	}
	return errors.Join(do(dir), os.RemoveAll(dir))
}

// copyTemplate writes a database with empty tables to path. Creating the tables each time would
// take as long as a simulation.
func copyTemplate(path string) error {
	file, err := template()
	if err != nil {
		return err
	}
	return os.WriteFile(path, file, 0o600)
}

// template returns the file of an empty database with the tables of the store
// and the engine.
var template = sync.OnceValues(func() (file []byte, err error) {
	err = WithTempDir(func(dir string) error {
		path, ctx := filepath.Join(dir, "template.db"), context.Background()
		db, err := sqlite.Open(ctx, path)
		if err != nil {
			return err
		}
		_, err = sqlite.NewStore(ctx, db, clock.NewVirtual(Start))
		if err == nil {
			_, err = sqlite.NewFeed(ctx, db, sqlite.FeedConfig{Clock: clock.NewVirtual(Start), Retention: eventRetention})
		}
		// Close checkpoints the write-ahead log.
		if err = errors.Join(err, engine.Migrate(ctx, db), db.Close()); err == nil {
			file, err = os.ReadFile(path) //nolint:gosec // the path is from withTempDir
		}
		return err
	})
	return file, err
})
