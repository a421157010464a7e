package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
	zombiezen "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// childPath names the environment variable that turns this binary into a
// process which writes numbers into the database there until it is killed, or compacts it
// if childCompacts is set.
const (
	childPath     = "SORTIE_TEST_SQLITE_CHILD"
	childCompacts = "SORTIE_TEST_SQLITE_COMPACTS"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childPath); path != "" {
		os.Exit(child(path))
	}
	goleak.VerifyTestMain(m)
}

var notes = []string{"CREATE TABLE notes (n INTEGER PRIMARY KEY, text TEXT) STRICT"}

func setup(t *testing.T) *sqlite.DB {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "sortie.db"))
}

func open(t *testing.T, path string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Migrate(t.Context(), "notes", notes); err != nil {
		t.Fatal(err)
	}
	return db
}

func insert(n int, text string) func(*sqlite.Tx) error {
	return func(tx *sqlite.Tx) error {
		_, err := tx.Exec("INSERT INTO notes VALUES (?, ?)", n, text)
		return err
	}
}

func numbers(t *testing.T, db *sqlite.DB) []int {
	t.Helper()
	got := []int{}
	err := db.Read(t.Context(), func(tx *sqlite.Tx) error {
		rows := tx.Query("SELECT n FROM notes ORDER BY n")
		for rows.Next() {
			var n int
			if err := rows.Scan(&n); err != nil {
				return err
			}
			got = append(got, n)
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func wantNumbers(t *testing.T, db *sqlite.DB, want ...int) {
	t.Helper()
	if got := numbers(t, db); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got notes %v, want %v", got, want)
	}
}

func TestChangesSurviveReopening(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a folder with % and ?", "sortie#1.db")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	db := open(t, path)
	if err := db.Write(t.Context(), insert(1, "one")); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Write(t.Context(), insert(2, "two")); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("write to a closed database: got %v", err)
	}
	if err := db.Read(t.Context(), func(*sqlite.Tx) error { return nil }); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("read of a closed database: got %v", err)
	}
	wantNumbers(t, open(t, path), 1)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Fatalf("got mode %v, want 0600", info.Mode())
	}
}

func TestReadIsASnapshot(t *testing.T) {
	t.Parallel()
	db := setup(t)
	if err := db.Write(t.Context(), insert(1, "one")); err != nil {
		t.Fatal(err)
	}
	err := db.Read(t.Context(), func(tx *sqlite.Tx) error {
		const count = "SELECT count(*) FROM notes"
		var before, after int
		if err := tx.QueryRow(count).Scan(&before); err != nil {
			return err
		}
		if err := db.Write(t.Context(), insert(2, "two")); err != nil {
			return err
		}
		if err := tx.QueryRow(count).Scan(&after); err != nil {
			return err
		}
		if before != 1 || after != 1 {
			t.Errorf("got %d notes, then %d in one read, want the same", before, after)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantNumbers(t, db, 1, 2)
}

func TestSequentialReadsShareAConnection(t *testing.T) {
	t.Parallel()
	db := setup(t)
	for range 6 {
		numbers(t, db)
	}
	if made := db.Readers(); made != 1 {
		t.Fatalf("sequential reads: got %d connections, want 1", made)
	}
	err := db.Read(t.Context(), func(*sqlite.Tx) error {
		numbers(t, db)
		numbers(t, db)
		return nil
	})
	if made := db.Readers(); err != nil || made != 2 {
		t.Fatalf("nested reads: got %d connections, %v", made, err)
	}
}

// TestReadThatDoesNotReturn panics and ends its goroutine in reads; the caller sees both,
// and later reads work.
func TestReadThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	db := setup(t)
	for range 6 {
		func() {
			defer func() {
				if got := recover(); got != "of the read" {
					t.Errorf("got a panic with %v, want that of the read", got)
				}
			}()
			_ = db.Read(t.Context(), func(*sqlite.Tx) error { panic("of the read") })
			t.Error("got a return of a read that panicked, want its panic")
		}()
	}
	for range 6 {
		ended, returned := make(chan struct{}), false
		go func() {
			defer close(ended)
			_ = db.Read(t.Context(), func(*sqlite.Tx) error { runtime.Goexit(); return nil })
			returned = true
		}()
		<-ended
		if returned {
			t.Error("got a return of a read that ended its goroutine, want the end of the caller's")
		}
	}
	numbers(t, db)
}

func TestReadCannotWrite(t *testing.T) {
	t.Parallel()
	db := setup(t)
	if err := db.Read(t.Context(), insert(1, "one")); err == nil {
		t.Error("Exec in a read: got success")
	}
	err := db.Read(t.Context(), func(tx *sqlite.Tx) error {
		return tx.QueryRow("INSERT INTO notes VALUES (1, '') RETURNING n").Scan(new(int))
	})
	if err == nil {
		t.Error("INSERT ... RETURNING in a read: got success")
	}
	wantNumbers(t, db)
}

func TestNestedQueries(t *testing.T) {
	t.Parallel()
	db := setup(t)
	for n := range 3 {
		if err := db.Write(t.Context(), insert(n, "")); err != nil {
			t.Fatal(err)
		}
	}
	const query = "SELECT n FROM notes ORDER BY n"
	err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
		pairs := 0
		outer := tx.Query(query)
		for outer.Next() {
			inner := tx.Query(query)
			for inner.Next() {
				pairs++
			}
		}
		if pairs != 9 {
			t.Errorf("got %d pairs of nested rows, want 9", pairs)
		}
		left := tx.Query(query) // left open
		left.Next()
		_, err := tx.Exec("DELETE FROM notes WHERE n = 0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	wantNumbers(t, db, 1, 2)
	err = db.Read(t.Context(), func(tx *sqlite.Tx) error {
		return tx.QueryRow("SELECT n FROM notes WHERE n = 7").Scan(new(int))
	})
	if !errors.Is(err, sqlite.ErrNoRow) {
		t.Fatalf("missing row: got %v", err)
	}
}

func TestReadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	db := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	err := db.Read(ctx, func(tx *sqlite.Tx) error {
		rows := tx.Query("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c")
		for rows.Next() {
			if seen++; seen == 10 {
				cancel()
			}
		}
		return rows.Err()
	})
	if !errors.Is(err, context.Canceled) || seen != 10 {
		t.Fatalf("after %d rows: got %v", seen, err)
	}
}

func TestSecondOwnerIsRefused(t *testing.T) {
	t.Parallel()
	db := setup(t)
	_, err := sqlite.Open(t.Context(), db.Path())
	if !errors.Is(err, sqlite.ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Fatalf("second owner: got %v", err)
	}
	if err := db.Write(t.Context(), insert(1, "one")); err != nil {
		t.Fatalf("first owner: got %v, want success", err)
	}
}

func TestDamagedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sortie.db")
	garbage := strings.Repeat("this is not a database. ", 1000)
	if err := os.WriteFile(path, []byte(garbage), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), path); !errors.Is(err, sqlite.ErrDamaged) {
		t.Fatalf("open of a file that is not a database: got %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != garbage {
		t.Fatal("got a changed file, want it untouched")
	}
	// The failed open released the lock.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

func TestForeignLock(t *testing.T) {
	t.Parallel()
	db := setup(t)
	err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
		_, err := tx.Exec("PRAGMA busy_timeout = 0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	other, err := zombiezen.OpenConn(db.Path(), zombiezen.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := sqlitex.ExecuteTransient(other, "BEGIN IMMEDIATE", nil); err != nil {
		t.Fatal(err)
	}
	if err := db.Write(t.Context(), insert(1, "one")); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("write to a locked database: got %v", err)
	}
	if err := sqlitex.ExecuteTransient(other, "ROLLBACK", nil); err != nil {
		t.Fatal(err)
	}
	// Without a timeout, a reader that opens the file can block the writer.
	err = db.Write(t.Context(), insert(2, "two"))
	for tries := 0; fault.Is(err, fault.Unavailable) && tries < 1000; tries++ {
		err = db.Write(t.Context(), insert(2, "two"))
	}
	if err != nil {
		t.Fatalf("write after the lock is released: got %v", err)
	}
	wantNumbers(t, db, 2)
}
