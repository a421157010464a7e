package sqlite_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	zombiezen "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

// addNotes adds n notes of 10,000 bytes.
func addNotes(t *testing.T, db *sqlite.DB, n int) {
	t.Helper()
	err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
		_, err := tx.Exec(fmt.Sprintf(`INSERT INTO notes WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT %d)
			SELECT n, printf('%%10000d', n) FROM c`, n))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func execute(t *testing.T, db *sqlite.DB, query string) {
	t.Helper()
	err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
		_, err := tx.Exec(query)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// fileSize is the size of the database file itself.
func fileSize(t *testing.T, db *sqlite.DB) int64 {
	t.Helper()
	info, err := os.Stat(db.Path())
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func TestFileShrinksAfterDeletes(t *testing.T) {
	t.Parallel()
	db := setup(t)
	addNotes(t, db, 2000) // 20 MB
	execute(t, db, "DELETE FROM notes WHERE n % 10 > 0")
	before, err := db.Size(t.Context())
	if err != nil || before.Used > before.File/2 {
		t.Fatalf("got size %+v, %v", before, err)
	}
	freed, err := db.Shrink(t.Context(), 500)
	if err != nil || freed != 500 {
		t.Fatalf("got %d pages, %v, want the limit of 500", freed, err)
	}
	for freed > 0 {
		if freed, err = db.Shrink(t.Context(), 10_000); err != nil {
			t.Fatal(err)
		}
	}
	after, err := db.Size(t.Context())
	if err != nil || after.File > before.Used+before.Used/8 || fileSize(t, db) != after.File {
		t.Errorf("got size %+v, %v and a file of %d bytes, want about %d", after, err, fileSize(t, db), before.Used)
	}
	if got := numbers(t, db); len(got) != 200 {
		t.Errorf("got %d notes, want 200", len(got))
	}
}

// earlierFile creates a database as versions without Shrink did, with free pages.
func earlierFile(t *testing.T, notes int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "it's.db")
	conn, err := zombiezen.OpenConn(path, zombiezen.OpenReadWrite|zombiezen.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range []string{
		"PRAGMA journal_mode = WAL", "CREATE TABLE migrations (owner TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT, WITHOUT ROWID",
		"INSERT INTO migrations VALUES ('notes', 1)", "CREATE TABLE notes (n INTEGER PRIMARY KEY, text TEXT) STRICT",
		fmt.Sprintf(`INSERT INTO notes WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT %d) SELECT n, printf('%%10000d', n) FROM c`, notes),
		"DELETE FROM notes WHERE n % 2 = 1",
	} {
		if err := sqlitex.ExecuteTransient(conn, each, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEarlierFileIsCompacted(t *testing.T) {
	t.Parallel()
	db := open(t, earlierFile(t, 400))
	before := fileSize(t, db)
	if done, err := db.Compact(t.Context()); err != nil || !done {
		t.Fatalf("got %v, %v, want a compacted file", done, err)
	}
	if after := fileSize(t, db); after > before*3/4 {
		t.Errorf("got a file of %d bytes of %d, want less", after, before)
	}
	if done, err := db.Compact(t.Context()); err != nil || done {
		t.Errorf("again: got %v, %v, want nothing to do", done, err)
	}
	if got := numbers(t, db); len(got) != 200 {
		t.Errorf("got %d notes, want 200", len(got))
	}
	fill := insert(1, strings.Repeat("x", 1<<20))
	if err := db.Write(t.Context(), fill); err != nil {
		t.Fatal(err)
	}
	execute(t, db, "DELETE FROM notes")
	if freed, err := db.Shrink(t.Context(), 10_000); err != nil || freed < 500 {
		t.Errorf("got %d pages, %v, want the deleted ones", freed, err)
	}
	entries, err := os.ReadDir(filepath.Dir(db.Path()))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), "it's.db") {
			t.Errorf("got the file %s, want no temporary one", entry.Name())
		}
	}
}

// TestCompactWithoutSpace runs Compact in a process that may not write files as large as
// the copy.
func TestCompactWithoutSpace(t *testing.T) {
	t.Parallel()
	path := earlierFile(t, 2000)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -f 1000; exec "$0"`, os.Args[0])
	cmd.Env = append(os.Environ(), childPath+"="+path, childCompacts+"=1")
	out, err := cmd.Output()
	// A limit of the file's size is EFBIG, which SQLite does not report as a full disk.
	if err != nil || !strings.Contains(string(out), "cannot compact the database") {
		t.Fatalf("got %q, %v, want an error", out, err)
	}
	db := open(t, path)
	if got := numbers(t, db); len(got) != 1000 {
		t.Errorf("got %d notes, want 1000", len(got))
	}
	if done, err := db.Compact(t.Context()); err != nil || !done {
		t.Errorf("with space: got %v, %v, want a compacted file", done, err)
	}
}

// TestKilledCompactIsHarmless kills processes that compact a file, each at another moment.
func TestKilledCompactIsHarmless(t *testing.T) {
	t.Parallel()
	path := earlierFile(t, 2000)
	for size := int64(0); ; size += 1 << 20 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childPath+"="+path, childCompacts+"=1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		// The log of the copy grows until it is committed.
		for done := false; !done; {
			select {
			case <-ended:
				done = true
			case <-time.After(100 * time.Microsecond):
				if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > size {
					_ = cmd.Process.Kill()
				}
			}
		}
		db := open(t, path)
		if got := numbers(t, db); len(got) != 1000 {
			t.Fatalf("killed at %d bytes: got %d notes, want 1000", size, len(got))
		}
		done, err := false, error(nil)
		if size > 12<<20 {
			done, err = db.Compact(t.Context())
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if done || size > 12<<20 {
			return
		}
	}
}
