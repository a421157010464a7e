package sqlite_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestEventsOfARun commits many events of a run, some of them long and some together, to a new
// run and to one of an earlier version, whose events are rows. All are read in their order, in
// pages of any size.
func TestEventsOfARun(t *testing.T) {
	t.Parallel()
	for name, earlier := range map[string]bool{"new run": false, "run of an earlier version": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "sortie.db")
			store, db, _ := setupStore(t, path)
			created := newRun("a")
			if _, err := store.Create(t.Context(), created, nil); err != nil {
				t.Fatal(err)
			}
			if earlier {
				first, err := json.Marshal(created.Events[0])
				if err != nil {
					t.Fatal(err)
				}
				change(t, db, "INSERT INTO events (run, seq, doc) SELECT n, 1, ? FROM runs", first)
				change(t, db, "UPDATE runs SET history = NULL")
			}
			want := created.Events
			for i := range 40 {
				r, err := store.Load(t.Context(), created.Run.Ref())
				if err != nil {
					t.Fatal(err)
				}
				w := port.Write{Run: r}
				for range 1 + i%3 {
					e := created.Events[0]
					e.ID, e.Seq, e.Message = fmt.Sprintf("event-%d", len(want)+1), len(want)+1, "ü, \"]"
					if len(want)%7 == 0 {
						e.Message = strings.Repeat("long", 400)
					}
					w.Events, want = append(w.Events, e), append(want, e)
				}
				if i%10 == 9 {
					want = want[:len(want)-len(w.Events)]
					w.Events = nil
				}
				if err := store.Commit(t.Context(), w); err != nil {
					t.Fatal(err)
				}
			}
			for _, limit := range []int{1, 5, 1000} {
				var got []run.Event
				for after := 0; ; {
					page, err := store.Events(t.Context(), created.Run.Ref(), after, limit)
					if err != nil || len(page) > limit {
						t.Fatalf("got %d events, %v, want at most %d", len(page), err, limit)
					}
					if len(page) == 0 {
						break
					}
					got, after = slices.Concat(got, page), page[len(page)-1].Seq
				}
				if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(fault.Fault{})); diff != "" {
					t.Fatalf("pages of %d: want -, got +\n%s", limit, diff)
				}
			}
			if rows := count(t, db, "SELECT count(*) FROM events"); rows == 0 || rows >= len(want)-10 {
				t.Errorf("got %d rows for %d events, want some in the row of the run", rows, len(want))
			}
			found, err := sqlite.Inspect(t.Context(), path, "a")
			if text := fmt.Sprintf("%s", found["events"]); err != nil || strings.Count(text, "eventId") != len(want) {
				t.Errorf("got %d events, %v, want %d", strings.Count(text, "eventId"), err, len(want))
			}
			change(t, db, "UPDATE runs SET history = x'05'")
			if got, err := store.Events(t.Context(), created.Run.Ref(), 0, 10); err == nil {
				t.Errorf("got %d events of a damaged row, want an error", len(got))
			}
		})
	}
}
