package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

// TestObserveCountsRows compares a lookup with a scan, in reads and writes.
func TestObserveCountsRows(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(query string) {
		t.Helper()
		ok(db.Write(t.Context(), func(tx *sqlite.Tx) error {
			_, err := tx.Exec(query)
			return err
		}))
	}
	write("CREATE TABLE a (n INTEGER PRIMARY KEY, text TEXT) STRICT")
	write("WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c WHERE n < 1000) INSERT INTO a SELECT n, 'text' || n FROM c")
	var seen []sqlite.Statement
	db.Observe(func(s sqlite.Statement) { seen = append(seen, s) })
	one := func(query string) sqlite.Statement {
		t.Helper()
		seen = nil
		for range 2 { // each execution is counted alone
			ok(db.Read(t.Context(), func(tx *sqlite.Tx) error {
				var n int
				return tx.QueryRow(query).Scan(&n)
			}))
		}
		if len(seen) != 2 || seen[0].Query != query || seen[0].Steps != seen[1].Steps {
			t.Fatalf("got %+v, want the same counters twice", seen)
		}
		return seen[1]
	}
	if s := one("SELECT n FROM a WHERE n = 7"); s.Steps > 20 || s.Scanned != 0 || s.Pages < 1 || s.Pages > 3 {
		t.Errorf("got %+v for a lookup", s)
	}
	if s := one("SELECT n FROM a WHERE text = 'text1000'"); s.Steps < 1000 || s.Scanned != 999 || s.Pages < 3 {
		t.Errorf("got %+v for a scan of 1,000 rows", s)
	}
	if s := one("SELECT n FROM a ORDER BY text LIMIT 1"); s.Sorts != 1 {
		t.Errorf("got %+v for a sort", s)
	}
	seen = nil
	write("UPDATE a SET text = 'x' WHERE text = 'text500'")
	if len(seen) != 1 || seen[0].Steps < 1000 {
		t.Errorf("got %+v for a change that scans 1,000 rows", seen)
	}
	db.Observe(nil)
	write("DELETE FROM a WHERE n = 1")
	if len(seen) != 1 {
		t.Errorf("got %d statements after the end, want 1", len(seen))
	}
}
