package sqlite_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

// syncs returns the value of PRAGMA synchronous at the commit of a change.
func syncs(t *testing.T, n int, write func(context.Context, func(*sqlite.Tx) error) error) (synchronous int) {
	t.Helper()
	err := write(t.Context(), func(tx *sqlite.Tx) error {
		// A prepared statement has the value of its preparation.
		if err := tx.QueryRow(fmt.Sprintf("PRAGMA synchronous /* %d */", n)).Scan(&synchronous); err != nil {
			return err
		}
		return insert(n, "text")(tx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return synchronous
}

func TestRelaxedCommitDoesNotSync(t *testing.T) {
	t.Parallel()
	db := setup(t)
	const normal, full = 1, 2
	before := db.Stats()
	for n, each := range []struct {
		write func(context.Context, func(*sqlite.Tx) error) error
		want  int
	}{{db.Write, full}, {db.WriteRelaxed, normal}, {db.WriteRelaxed, normal}, {db.Write, full}} {
		if got := syncs(t, n, each.write); got != each.want {
			t.Errorf("commit %d: got synchronous %d, want %d", n, got, each.want)
		}
	}
	wantNumbers(t, db, 0, 1, 2, 3)
	after := db.Stats()
	if commits, relaxed := after.Commits-before.Commits, after.Relaxed-before.Relaxed; commits != 4 || relaxed != 2 {
		t.Errorf("got %d commits and %d without a sync, want 4 and 2", commits, relaxed)
	}
}

// TestRelaxedChangeDoesNotWaitForASync checks which changes that wait together share a commit.
func TestRelaxedChangeDoesNotWaitForASync(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name             string
		relaxed          []bool
		commits, without int64
	}{
		{"relaxed ones share a commit", []bool{true, true, true}, 1, 1},
		{"a later sync is left for the next commit", []bool{true, true, false}, 2, 1},
		{"a relaxed one after a sync joins it", []bool{false, true, true}, 1, 0},
		{"order is kept", []bool{true, false, true}, 2, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			db := setup(t)
			before := db.Stats()
			var want []int
			var changes []func(*sqlite.Tx) error
			for i := range test.relaxed {
				changes, want = append(changes, insert(i, "text")), append(want, i)
			}
			as := func(i int) func(context.Context, func(*sqlite.Tx) error) error {
				if test.relaxed[i] {
					return db.WriteRelaxed
				}
				return db.Write
			}
			for i, err := range togetherAs(t, db, db.WriteRelaxed, as, changes...) {
				if err != nil {
					t.Errorf("change %d: %v", i, err)
				}
			}
			wantNumbers(t, db, want...)
			after := db.Stats()
			if commits, relaxed := after.Commits-before.Commits, after.Relaxed-before.Relaxed; commits != test.commits || relaxed != test.without {
				t.Errorf("got %d commits and %d without a sync, want %d and %d", commits, relaxed, test.commits, test.without)
			}
		})
	}
}
