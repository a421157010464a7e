package snapshot_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/local/sortie/snapshot"
)

// used is a database in WAL mode with two counters that always move together,
// by somebody who writes until the test ends.
func used(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "used.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE pair (a INT, b INT); INSERT INTO pair VALUES (1, 1)"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var writer sync.WaitGroup
	writer.Go(func() {
		for ctx.Err() == nil {
			if _, err := db.ExecContext(context.Background(), "BEGIN; UPDATE pair SET a = a + 1; UPDATE pair SET b = b + 1; COMMIT"); err != nil {
				t.Errorf("the writer was disturbed: %v", err)
				return
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		writer.Wait()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return path
}

func TestCopyIsOfOneMoment(t *testing.T) {
	t.Parallel()
	source, dir := used(t), t.TempDir()
	before := 0
	for range 5 {
		target := filepath.Join(dir, "copy.db")
		if err := snapshot.Copy(t.Context(), source, target); err != nil {
			t.Fatal(err)
		}
		a, b := read(t, target)
		if a != b || a < before {
			t.Errorf("the copy has %d and %d after %d", a, b, before)
		}
		before = a
		if err := os.Remove(target); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, error %v", entries, err)
	}
}

func read(t *testing.T, path string) (a, b int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), "SELECT a, b FROM pair").Scan(&a, &b); err != nil {
		t.Fatal(err)
	}
	return a, b
}

func TestCopyReplacesNothing(t *testing.T) {
	t.Parallel()
	source, target := used(t), filepath.Join(t.TempDir(), "mine")
	if err := os.WriteFile(target, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Copy(t.Context(), source, target); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v", err)
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "mine" {
		t.Errorf("the file has %q, error %v", text, err)
	}
}

func TestCopyLeavesNothingWhereItFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "no-database"), []byte("this is no database, is it? no, it is not"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{filepath.Join(dir, "no-database"), filepath.Join(dir, "not-there")} {
		into := t.TempDir()
		if err := snapshot.Copy(t.Context(), source, filepath.Join(into, "copy")); err == nil {
			t.Errorf("%s was copied", source)
		}
		if entries, err := os.ReadDir(into); err != nil || len(entries) != 0 {
			t.Errorf("left behind: %v, error %v", entries, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "not-there")); err == nil {
		t.Error("the source was made")
	}
}
