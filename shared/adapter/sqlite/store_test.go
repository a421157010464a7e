package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/clock"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/porttest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	porttest.Store(t, func(t *testing.T) orchestrator.Store {
		db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "sortie.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		store, err := sqlite.NewStore(t.Context(), db, clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
		if err != nil {
			t.Fatal(err)
		}
		return store
	})
}
