package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/fault"
)

// together has the changes share one transaction: the writer is held by a
// change before them until all of them wait. It gives their results in order.
func together(t *testing.T, db *sqlite.DB, changes ...func(*sqlite.Tx) error) []error {
	t.Helper()
	holding, release := make(chan struct{}), make(chan struct{})
	held := make(chan error, 1)
	go func() {
		first := true
		held <- db.Write(t.Context(), func(*sqlite.Tx) error {
			if first {
				first = false
				close(holding)
				<-release
			}
			return nil
		})
	}()
	<-holding
	results := make([]chan error, len(changes))
	for i, change := range changes {
		results[i] = make(chan error, 1)
		before := db.Waiting()
		go func() { results[i] <- db.Write(t.Context(), change) }()
		for db.Waiting() == before {
			yield()
		}
	}
	close(release)
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	errs := make([]error, len(changes))
	for i := range results {
		errs[i] = <-results[i]
	}
	return errs
}

func TestAnErrorUndoesItsOwnChangeAlone(t *testing.T) {
	t.Parallel()
	db := setup(t)
	refused := errors.New("refused")
	before := db.Stats()
	errs := together(
		t, db,
		insert(1, "one"),
		func(tx *sqlite.Tx) error {
			if err := insert(2, "two")(tx); err != nil {
				return err
			}
			return refused
		},
		insert(1, "one again"),
		insert(3, "three"),
	)
	if errs[0] != nil || !errors.Is(errs[1], refused) || errs[2] == nil || errs[3] != nil {
		t.Fatalf("the changes were told %v", errs)
	}
	wantNumbers(t, db, 1, 3)
	after := db.Stats()
	if commits := after.Commits - before.Commits; commits != 1 {
		t.Errorf("four changes that waited together cost %d commits", commits)
	}
	if after.Rows <= before.Rows {
		t.Errorf("got %d rows written, want more than %d", after.Rows, before.Rows)
	}
}

func TestAPanicComesOutOfItsOwnWrite(t *testing.T) {
	t.Parallel()
	db := setup(t)
	errs := together(
		t, db,
		insert(1, "one"),
		func(tx *sqlite.Tx) error {
			if err := insert(2, "two")(tx); err != nil {
				return err
			}
			return nil
		},
	)
	if errs[0] != nil || errs[1] != nil {
		t.Fatal(errs)
	}
	var got any
	func() {
		defer func() { got = recover() }()
		_ = db.Write(t.Context(), func(tx *sqlite.Tx) error {
			_ = insert(3, "three")(tx)
			panic("oh")
		})
	}()
	if got != "oh" {
		t.Fatalf("recovered %v", got)
	}
	wantNumbers(t, db, 1, 2)
	func() {
		defer func() { got = recover() }()
		_ = db.Read(t.Context(), func(*sqlite.Tx) error { panic("ah") })
	}()
	if got != "ah" {
		t.Fatalf("recovered %v", got)
	}
	wantNumbers(t, db, 1, 2)
}

// A deferred foreign key is checked by COMMIT: the only failure of a commit
// that a test can have for the asking.
func TestAFailedCommitFailsItsCauseAlone(t *testing.T) {
	t.Parallel()
	db := setup(t)
	err := db.Migrate(t.Context(), "children", []string{`CREATE TABLE children (
		of INTEGER REFERENCES notes (n) DEFERRABLE INITIALLY DEFERRED) STRICT`})
	if err != nil {
		t.Fatal(err)
	}
	errs := together(
		t, db,
		insert(1, "one"),
		func(tx *sqlite.Tx) error {
			if err := insert(2, "two")(tx); err != nil {
				return err
			}
			_, err := tx.Exec("INSERT INTO children VALUES (404)")
			return err
		},
		insert(3, "three"),
	)
	if errs[0] != nil || errs[1] == nil || errs[2] != nil {
		t.Fatalf("the changes were told %v", errs)
	}
	wantNumbers(t, db, 1, 3)
}

// TestRule10ACommitReachesTheDisk: a kill of the process would not show that it
// does not, and no test can cut the power.
func TestRule10ACommitReachesTheDisk(t *testing.T) {
	t.Parallel()
	db := setup(t)
	const full = 2 // PRAGMA synchronous: FULL
	var synchronous int
	var journal string
	err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
		if err := tx.QueryRow("PRAGMA synchronous").Scan(&synchronous); err != nil {
			return err
		}
		return tx.QueryRow("PRAGMA journal_mode").Scan(&journal)
	})
	if err != nil || synchronous < full || journal != "wal" {
		t.Errorf("the writer is synchronous %d with the journal %s, %v", synchronous, journal, err)
	}
}

func TestAFullDiskLosesNothing(t *testing.T) {
	t.Parallel()
	fill := func(tx *sqlite.Tx) error { return insert(100, strings.Repeat("x", 1<<20))(tx) }
	tests := []struct {
		name string
		big  func(*sqlite.Tx) error
	}{
		{"one row that rolls everything back", fill},
		{"a statement of many rows", func(tx *sqlite.Tx) error {
			_, err := tx.Exec(`INSERT INTO notes
				WITH RECURSIVE c(n) AS (SELECT 100 UNION ALL SELECT n + 1 FROM c LIMIT 1000)
				SELECT n, printf('%1000d', n) FROM c`)
			return err
		}},
		{"an error that the change ignores", func(tx *sqlite.Tx) error {
			_ = fill(tx)
			return nil
		}},
		{"a change that goes on afterwards", func(tx *sqlite.Tx) error {
			_ = fill(tx)
			return insert(101, "small")(tx)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			db := setup(t)
			limit := func(pages int) {
				err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
					_, err := tx.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", pages))
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := db.Write(t.Context(), insert(1, "one")); err != nil {
				t.Fatal(err)
			}
			limit(20)
			errs := together(t, db, insert(2, "two"), test.big, insert(3, "three"))
			if errs[0] != nil || !fault.Is(errs[1], fault.StoreFull) || errs[2] != nil {
				t.Fatalf("the changes were told %v", errs)
			}
			if err := db.Write(t.Context(), test.big); !fault.Is(err, fault.StoreFull) {
				t.Fatalf("alone, the big one was told %v", err)
			}
			wantNumbers(t, db, 1, 2, 3)
			limit(1 << 20)
			if err := db.Write(t.Context(), fill); err != nil {
				t.Fatalf("with room again: %v", err)
			}
			wantNumbers(t, db, 1, 2, 3, 100)
		})
	}
}

func TestAChangeWhoseCallerLeftIsNotMade(t *testing.T) {
	t.Parallel()
	db := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	release, holding := make(chan struct{}), make(chan struct{})
	held := make(chan error, 1)
	go func() {
		held <- db.Write(ctx, func(tx *sqlite.Tx) error {
			close(holding)
			<-release
			return insert(1, "one")(tx)
		})
	}()
	<-holding
	left := make(chan error, 1)
	go func() { left <- db.Write(ctx, insert(2, "two")) }()
	for db.Waiting() == 0 {
		yield()
	}
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Fatalf("who left was told %v", err)
	}
	close(release)
	if err := <-held; err != nil {
		t.Fatalf("a change under way was given up: %v", err)
	}
	if err := db.Write(ctx, insert(3, "three")); !errors.Is(err, context.Canceled) {
		t.Fatalf("with an ended context: %v", err)
	}
	wantNumbers(t, db, 1)
}

func TestCloseTellsThoseWhoWait(t *testing.T) {
	t.Parallel()
	db := setup(t)
	release, holding := make(chan struct{}), make(chan struct{})
	held, waits := make(chan error, 1), make(chan error, 1)
	closed := make(chan error, 1)
	go func() {
		held <- db.Write(t.Context(), func(tx *sqlite.Tx) error {
			close(holding)
			<-release
			return insert(1, "one")(tx)
		})
	}()
	<-holding
	go func() { waits <- db.Write(t.Context(), insert(2, "two")) }()
	for db.Waiting() == 0 {
		yield()
	}
	go func() { closed <- db.Close() }()
	close(release)
	if err := <-held; err != nil {
		t.Errorf("the change under way was told %v", err)
	}
	err := <-waits
	if err != nil && !fault.Is(err, fault.Unavailable) {
		t.Errorf("the change that waited was told %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	want := []int{1}
	if err == nil { // it came into the same commit
		want = append(want, 2)
	}
	wantNumbers(t, open(t, db.Path()), want...)
}
