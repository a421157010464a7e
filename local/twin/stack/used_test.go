package stack_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	zombiezen "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/local/twin/s3"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// emptyDatabase replaces a database by one without tables.
func emptyDatabase(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	conn, err := zombiezen.OpenConn(path, zombiezen.OpenReadWrite|zombiezen.OpenCreate)
	if err != nil {
		return err
	}
	return errors.Join(sqlitex.ExecuteTransient(conn, "PRAGMA user_version = 1", nil), conn.Close())
}

// TestUsedFolderWithoutADatabaseIsRefused starts copies of a used folder without one of its
// databases.
func TestUsedFolderWithoutADatabaseIsRefused(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, file string
		change     func(path string) error
		want       error
	}{
		{"missing records", "sortie.db", os.Remove, stack.ErrRecordsLost},
		{"empty records", "sortie.db", func(path string) error { return os.Truncate(path, 0) }, stack.ErrRecordsLost},
		{"records without tables", "sortie.db", emptyDatabase, stack.ErrRecordsLost},
		{"missing catalog", "s3/catalog.db", os.Remove, s3.ErrCatalogLost},
		{"empty catalog", "s3/catalog.db", func(path string) error { return os.Truncate(path, 0) }, s3.ErrCatalogLost},
		{"catalog without tables", "s3/catalog.db", emptyDatabase, s3.ErrCatalogLost},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			folder, _ := olderFolder(t, "folder-5")
			path := filepath.Join(folder, filepath.FromSlash(row.file))
			if err := row.change(path); err != nil {
				t.Fatal(err)
			}
			bytes := blobs(t, folder)
			for range 2 { // the first refusal changes nothing
				config, err := configure(served{Data: folder})
				if err != nil {
					t.Fatal(err)
				}
				if s, err := stack.Start(t.Context(), config); !errors.Is(err, row.want) {
					t.Errorf("got %v, want %v", err, row.want)
					if err == nil {
						_ = s.Stop(context.Background())
					}
				}
			}
			if got := blobs(t, folder); got != bytes {
				t.Errorf("got %d objects, want %d", got, bytes)
			}
		})
	}
}

// TestKilledFirstStartIsNoUse kills first starts after the creation of each file.
func TestKilledFirstStartIsNoUse(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		data := t.TempDir()
		process, err := stacktest.Launch(served{Data: data}, &stacktest.Log{})
		if err != nil {
			t.Fatal(err)
		}
		ready := false
		for !ready && files(t, data) < n {
			select {
			case <-process.Ready():
				ready = true
			default:
			}
		}
		if _, err := process.End(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		config, err := configure(served{Data: data})
		if err != nil {
			t.Fatal(err)
		}
		s, err := stack.Start(t.Context(), config)
		if err != nil {
			t.Fatalf("killed at file %d: got %v, want a start", n, err)
		}
		if err := s.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		if ready {
			return
		}
	}
}

// files counts the files and folders of a data folder.
func files(t *testing.T, data string) (n int) {
	t.Helper()
	_ = filepath.WalkDir(data, func(string, os.DirEntry, error) error { n++; return nil })
	return n
}

// TestPartsListenInTheFamilyOfTheAddress runs an export with ::1 only.
func TestPartsListenInTheFamilyOfTheAddress(t *testing.T) {
	t.Parallel()
	g := start(t, served{Addr: "[::1]:0"})
	for _, url := range []string{g.Addresses.URL, g.Addresses.S3, g.Addresses.Machines, g.Addresses.Source} {
		if len(url) < 12 || url[:12] != "http://[::1]" {
			t.Errorf("got %s, want an address of [::1]", url)
		}
	}
	if status := g.End(g.post(contract.ExportOptions{})); status.Status != contract.StatusSuccess {
		t.Errorf("got %+v, want a success", status)
	}
}
