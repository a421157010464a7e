package apitest

import (
	"path/filepath"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/port/sqlitetest"
	"github.com/sortie-dev/sortie/shared/adapter/keyfile"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// NewParts returns adapters in a temporary directory of the test: the embedded store, a key
// file and a virtual clock.
func NewParts(t *testing.T) Parts {
	t.Helper()
	folder, moved := sqlitetest.Folder(t), clock.NewVirtual(Began)
	db, err := sqlitetest.Open(t.Context(), filepath.Join(folder, "sortie.db"))
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
	return Parts{Store: store, Signer: signer, Clock: moved}
}
