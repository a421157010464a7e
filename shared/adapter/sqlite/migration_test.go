package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

func TestMigrateUpdatesAnOlderFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sortie.db")
	db := open(t, path)
	if err := db.Write(t.Context(), insert(1, "one")); err != nil {
		t.Fatal(err)
	}
	steps := slices.Concat(notes[:1], []string{
		"ALTER TABLE notes ADD COLUMN color TEXT; UPDATE notes SET color = 'red';",
		"CREATE TABLE more (n INTEGER) STRICT",
	})
	for range 2 { // the second call has nothing to do
		if err := db.Migrate(t.Context(), "notes", steps); err != nil {
			t.Fatal(err)
		}
	}
	var color string
	err := db.Read(t.Context(), func(tx *sqlite.Tx) error {
		return tx.QueryRow("SELECT color FROM notes WHERE n = 1").Scan(&color)
	})
	if err != nil || color != "red" {
		t.Fatalf("got color %q of the old row, %v", color, err)
	}
}

func TestMigrationsPerOwner(t *testing.T) {
	t.Parallel()
	db := setup(t)
	if err := db.Migrate(t.Context(), "other", []string{"CREATE TABLE a (n) ", "CREATE TABLE b (n)"}); err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(t.Context(), "notes", notes); err != nil {
		t.Fatal(err)
	}
}

func TestNewerFileIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sortie.db")
	db := open(t, path)
	if err := db.Migrate(t.Context(), "notes", append(notes[:1:1], "CREATE TABLE later (n)")); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	db, err = sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(t.Context(), "notes", notes); !errors.Is(err, sqlite.ErrNewer) {
		t.Fatalf("newer file: got %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Fatal("got a changed file, want it untouched")
	}
}

func TestFailedMigrationIsRolledBack(t *testing.T) {
	t.Parallel()
	db := setup(t)
	err := db.Migrate(t.Context(), "other", []string{
		"CREATE TABLE first (n)",
		"CREATE TABLE second (n); INSERT INTO nowhere VALUES (1)",
	})
	if err == nil {
		t.Fatal("broken step: got success")
	}
	if err := db.Migrate(t.Context(), "other", []string{"CREATE TABLE first (n)", "CREATE TABLE second (n)"}); err != nil {
		t.Fatalf("corrected step: got %v, want success", err)
	}
}

func TestBackupIsConsistentDuringWrites(t *testing.T) {
	t.Parallel()
	db := setup(t)
	ctx, stop := context.WithCancel(t.Context())
	started, ended := make(chan struct{}), make(chan error, 1)
	go func() { // each change adds two rows: an odd number would be half of a change
		for n := 0; ; n += 2 {
			err := db.Write(ctx, func(tx *sqlite.Tx) error {
				return errors.Join(insert(n, "even")(tx), insert(n+1, "odd")(tx))
			})
			if err != nil {
				ended <- err
				return
			}
			if n == 100 {
				close(started)
			}
		}
	}()
	<-started
	folder := t.TempDir()
	copied := filepath.Join(folder, "copy.db")
	if err := db.Backup(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := db.Backup(t.Context(), copied); !errors.Is(err, os.ErrExist) {
		t.Fatalf("backup over an existing file: got %v", err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Fatalf("got files %v, %v; want only the copy", entries, err)
	}
	if got := numbers(t, open(t, copied)); len(got) < 100 || len(got)%2 != 0 {
		t.Fatalf("got %d notes in the copy", len(got))
	}
}

func TestFailedBackupLeavesNoFile(t *testing.T) {
	t.Parallel()
	db := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	folder := t.TempDir()
	if err := db.Backup(ctx, filepath.Join(folder, "copy.db")); !errors.Is(err, context.Canceled) {
		t.Fatalf("backup with an ended context: got %v", err)
	}
	if err := db.Backup(t.Context(), filepath.Join(folder, "nowhere", "copy.db")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("backup into a missing folder: got %v", err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Fatalf("got files %v, %v; want no file", entries, err)
	}
}
