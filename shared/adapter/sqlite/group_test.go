package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// together executes the changes in one transaction: an earlier change blocks
// the writer until all of them wait. It returns their results in order.
func together(t *testing.T, db *sqlite.DB, changes ...func(*sqlite.Tx) error) []error {
	t.Helper()
	return togetherAs(t, db, db.Write, func(int) func(context.Context, func(*sqlite.Tx) error) error { return db.Write }, changes...)
}

// togetherAs is like together, with other functions that write: hold blocks the writer, and
// as(i) writes the change i.
func togetherAs(
	t *testing.T, db *sqlite.DB, hold func(context.Context, func(*sqlite.Tx) error) error,
	as func(int) func(context.Context, func(*sqlite.Tx) error) error, changes ...func(*sqlite.Tx) error,
) []error {
	t.Helper()
	holding, release := make(chan struct{}), make(chan struct{})
	held := make(chan error, 1)
	go func() {
		first := true
		held <- hold(t.Context(), func(*sqlite.Tx) error {
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
		go func() { results[i] <- as(i)(t.Context(), change) }()
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

func TestErrorUndoesOnlyItsChange(t *testing.T) {
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
		t.Fatalf("got results %v", errs)
	}
	wantNumbers(t, db, 1, 3)
	after := db.Stats()
	if commits := after.Commits - before.Commits; commits != 1 {
		t.Errorf("got %d commits for four changes that waited together", commits)
	}
	if after.Rows <= before.Rows {
		t.Errorf("got %d rows written, want more than %d", after.Rows, before.Rows)
	}
}

func TestPanicReachesItsCaller(t *testing.T) {
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
		t.Fatalf("got panic %v", got)
	}
	wantNumbers(t, db, 1, 2)
	func() {
		defer func() { got = recover() }()
		_ = db.Read(t.Context(), func(*sqlite.Tx) error { panic("ah") })
	}()
	if got != "ah" {
		t.Fatalf("got panic %v", got)
	}
	wantNumbers(t, db, 1, 2)
}

// TestFailedCommitFailsOnlyItsCause uses a deferred foreign key, which COMMIT checks. It is the
// only failure of a commit that a test can cause.
func TestFailedCommitFailsOnlyItsCause(t *testing.T) {
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
		t.Fatalf("got results %v, want only the second to fail", errs)
	}
	wantNumbers(t, db, 1, 3)
}

// TestCommitSyncsToDisk checks the settings for Rule 10 of shared/README.md. Killing the
// process would not detect a missing sync, and a test cannot cut the power.
func TestCommitSyncsToDisk(t *testing.T) {
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
		t.Errorf("got synchronous %d and journal %s, %v", synchronous, journal, err)
	}
}

func TestFullDiskLosesNothing(t *testing.T) {
	t.Parallel()
	fill := func(tx *sqlite.Tx) error { return insert(100, strings.Repeat("x", 1<<20))(tx) }
	tests := []struct {
		name string
		big  func(*sqlite.Tx) error
	}{
		{"one row rolls the transaction back", fill},
		{"statement of many rows", func(tx *sqlite.Tx) error {
			_, err := tx.Exec(`INSERT INTO notes
				WITH RECURSIVE c(n) AS (SELECT 100 UNION ALL SELECT n + 1 FROM c LIMIT 1000)
				SELECT n, printf('%1000d', n) FROM c`)
			return err
		}},
		{"change ignores the error", func(tx *sqlite.Tx) error {
			_ = fill(tx)
			return nil
		}},
		{"change continues after the error", func(tx *sqlite.Tx) error {
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
				t.Fatalf("got results %v", errs)
			}
			if err := db.Write(t.Context(), test.big); !fault.Is(err, fault.StoreFull) {
				t.Fatalf("large change alone: got %v", err)
			}
			wantNumbers(t, db, 1, 2, 3)
			limit(1 << 20)
			if err := db.Write(t.Context(), fill); err != nil {
				t.Fatalf("with free space: got %v, want success", err)
			}
			wantNumbers(t, db, 1, 2, 3, 100)
		})
	}
}

func TestCancelledChangeIsNotApplied(t *testing.T) {
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
		t.Fatalf("cancelled change: got %v", err)
	}
	close(release)
	if err := <-held; err != nil {
		t.Fatalf("change in progress: got %v, want success", err)
	}
	if err := db.Write(ctx, insert(3, "three")); !errors.Is(err, context.Canceled) {
		t.Fatalf("ended context: got %v", err)
	}
	wantNumbers(t, db, 1)
}

func TestCloseFailsWaitingChanges(t *testing.T) {
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
		t.Errorf("change in progress: got %v", err)
	}
	err := <-waits
	if err != nil && !fault.Is(err, fault.Unavailable) {
		t.Errorf("waiting change: got %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	want := []int{1}
	if err == nil { // it was part of the same commit
		want = append(want, 2)
	}
	wantNumbers(t, open(t, db.Path()), want...)
}
