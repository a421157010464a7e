package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestResources(t *testing.T) {
	t.Parallel()
	porttest.Resources(t, func(t *testing.T) (port.ResourceStore, func()) {
		store, _, _ := setupStore(t, filepath.Join(t.TempDir(), "sortie.db"))
		return store, nil
	})
}
