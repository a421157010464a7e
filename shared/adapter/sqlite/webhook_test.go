package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestWebhooks(t *testing.T) {
	t.Parallel()
	porttest.Webhooks(t, func(t *testing.T) (port.WebhookStore, func()) {
		store, _, _ := setupStore(t, filepath.Join(t.TempDir(), "sortie.db"))
		return store, nil
	})
}
