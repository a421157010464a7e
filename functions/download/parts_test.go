package download_test

import (
	"path/filepath"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/clock"
	"github.com/sortie-dev/sortie/shared/adapter/keyfile"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/httpkit/apitest"
)

// parts are real adapters in a folder of the test.
func parts(t *testing.T) apitest.Parts {
	t.Helper()
	folder, moved := t.TempDir(), clock.NewVirtual(apitest.Began)
	db, err := sqlite.Open(t.Context(), filepath.Join(folder, "sortie.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	store, err := sqlite.NewStore(t.Context(), db, moved)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := keyfile.Open(filepath.Join(folder, "keys.pem"))
	if err != nil {
		t.Fatal(err)
	}
	return apitest.Parts{Store: store, Signer: signer, Clock: moved}
}
