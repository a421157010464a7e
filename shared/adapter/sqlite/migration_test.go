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

func TestMigrateBringsAnOlderFileUp(t *testing.T) {
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
	for range 2 { // the second time there is nothing to do
		if err := db.Migrate(t.Context(), "notes", steps); err != nil {
			t.Fatal(err)
		}
	}
	var color string
	err := db.Read(t.Context(), func(tx *sqlite.Tx) error {
		return tx.QueryRow("SELECT color FROM notes WHERE n = 1").Scan(&color)
	})
	if err != nil || color != "red" {
		t.Fatalf("the old row has the color %q, %v", color, err)
	}
}

func TestOwnersAreApart(t *testing.T) {
	t.Parallel()
	db := setup(t)
	if err := db.Migrate(t.Context(), "other", []string{"CREATE TABLE a (n) ", "CREATE TABLE b (n)"}); err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(t.Context(), "notes", notes); err != nil {
		t.Fatal(err)
	}
}

func TestANewerFileIsRefusedAndNotTouched(t *testing.T) {
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
		t.Fatalf("a newer file: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Fatal("the newer file was changed")
	}
}

func TestAStepThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	db := setup(t)
	err := db.Migrate(t.Context(), "other", []string{
		"CREATE TABLE first (n)",
		"CREATE TABLE second (n); INSERT INTO nowhere VALUES (1)",
	})
	if err == nil {
		t.Fatal("a broken step was accepted")
	}
	if err := db.Migrate(t.Context(), "other", []string{"CREATE TABLE first (n)", "CREATE TABLE second (n)"}); err != nil {
		t.Fatalf("the mended step: %v", err)
	}
}

func TestBackupIsConsistentWhileChangesGoOn(t *testing.T) {
	t.Parallel()
	db := setup(t)
	ctx, stop := context.WithCancel(t.Context())
	started, ended := make(chan struct{}), make(chan error, 1)
	go func() { // rows come in pairs: an odd number would be half of a change
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
		t.Fatalf("a backup over a file: %v", err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Fatalf("beside the copy there is %v, %v", entries, err)
	}
	if got := numbers(t, open(t, copied)); len(got) < 100 || len(got)%2 != 0 {
		t.Fatalf("the copy has %d notes", len(got))
	}
}

func TestABackupThatIsGivenUpLeavesNothing(t *testing.T) {
	t.Parallel()
	db := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	folder := t.TempDir()
	if err := db.Backup(ctx, filepath.Join(folder, "copy.db")); !errors.Is(err, context.Canceled) {
		t.Fatalf("a backup with an ended context: %v", err)
	}
	if err := db.Backup(t.Context(), filepath.Join(folder, "nowhere", "copy.db")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a backup into no folder: %v", err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Fatalf("left over: %v, %v", entries, err)
	}
}
