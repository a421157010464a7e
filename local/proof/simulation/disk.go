package simulation

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

// memory is where Linux keeps files that are on no disk.
const memory = "/dev/shm"

// inFolder makes a folder and removes it when do is over. It is in memory where
// the system has a place for that: a process is killed here and never the
// machine, so that waiting for a disk proves nothing.
func inFolder(do func(dir string) error) error {
	dir, err := os.MkdirTemp(memory, "sortie-simulation-")
	if err != nil {
		dir, err = os.MkdirTemp("", "sortie-simulation-")
	}
	if err != nil {
		return err
	}
	return errors.Join(do(dir), os.RemoveAll(dir))
}

// install puts a database at the path whose tables are made, and empty: making
// them anew takes as long as much of what is played on them.
func install(path string) error {
	file, err := template()
	if err != nil {
		return err
	}
	return os.WriteFile(path, file, 0o600)
}

// template is such a database, as the store and the engine make it.
var template = sync.OnceValues(func() (file []byte, err error) {
	err = inFolder(func(dir string) error {
		path, ctx := filepath.Join(dir, "template.db"), context.Background()
		db, err := sqlite.Open(ctx, path)
		if err != nil {
			return err
		}
		_, err = sqlite.NewStore(ctx, db, &timeline{now: start})
		// Close leaves nothing in the log.
		if err = errors.Join(err, engine.Migrate(ctx, db), db.Close()); err == nil {
			file, err = os.ReadFile(path) //nolint:gosec // it was made above
		}
		return err
	})
	return file, err
})
