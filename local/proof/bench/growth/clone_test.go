package growth

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

// chosen are the random parts of records: ids, names with them, and digests of both.
var chosen = regexp.MustCompile(`01[0-9A-Z]{24}|01[0-9a-z]{24}-[0-9a-z]{12}|[0-9a-f]{32,}|[0-9a-f]{14}`)

// rowsOf returns the rows about the runs of a home as texts, without numbers of rows. An event's
// stream is no part of a run's rows.
func rowsOf(ctx context.Context, h *home, tables ...string) (all []string, err error) {
	err = h.db.Read(ctx, func(tx *sqlite.Tx) error {
		all = nil
		for _, table := range tables {
			columns := tx.Query("SELECT name FROM pragma_table_info(?) WHERE pk = 0", table)
			var values []string
			for columns.Next() {
				var name string
				if err := columns.Scan(&name); err != nil {
					return err
				}
				value := "quote(" + name + ")"
				switch name {
				case "doc":
					value = "CAST(doc AS TEXT)"
				case "history":
					value = "history_events(history) || (substr(history, 1, 1) = x'00')"
				}
				values = append(values, "'"+name+"=' || coalesce("+value+", '')")
			}
			rows := tx.Query("SELECT " + strings.Join(values, " || ' ' || ") + " FROM " + table)
			for rows.Next() {
				var text string
				if err := rows.Scan(&text); err != nil {
					return err
				}
				all = append(all, table+": "+chosen.ReplaceAllString(text, "X"))
			}
			if err := rows.Err(); err != nil {
				return err
			}
		}
		return nil
	})
	slices.Sort(all)
	return all, err
}

// sparse are the tables that have rows of an ended run; empty are the others of runs.
var (
	sparse = []string{"runs", "executions"}
	empty  = []string{"events", "keys", "pools", "beats", "side_slots", "turns", "outbox", "job_results", "accounts", "usage", "deliveries"}
)

// TestCopiesEqualWhatTheProgramWrites runs a program twice, and compares all rows with those of
// one run and its copy.
func TestCopiesEqualWhatTheProgramWrites(t *testing.T) {
	t.Parallel()
	const later = 90 * time.Second
	made := func(copied bool) (*home, []string) {
		h := newHome(t, 0)
		one := func() string {
			id, err := h.submit(t.Context(), origin, "/v1/runs", programBody)
			if err == nil {
				err = h.finish(t.Context(), origin, id)
			}
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		id := one()
		h.clock.Advance(start.Add(later).Sub(h.clock.Now()))
		if copied {
			e, err := endedOf(t.Context(), h.db, origin, id)
			if err == nil {
				err = e.clone(t.Context(), h.db, 1, func(int) time.Time { return start.Add(later) }, h.random.number)
			}
			if err != nil {
				t.Fatal(err)
			}
		} else {
			one()
		}
		all, err := rowsOf(t.Context(), h, sparse...)
		if err != nil || len(all) != 4 {
			t.Fatalf("got %d rows, %v, want those of two runs", len(all), err)
		}
		return h, all
	}
	program, want := made(false)
	_, got := made(true)
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
	others, err := rowsOf(t.Context(), program, empty...)
	if err != nil || len(others) > 0 {
		t.Errorf("got %d rows of an ended run in other tables, %v, want none: %v", len(others), err, others)
	}
}

// newHome opens a home in memory.
func newHome(t *testing.T, limit int) *home {
	t.Helper()
	h, err := openHome(t.Context(), memory(t), newMachines(start), limit, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.close(); err != nil {
			t.Error(err)
		}
	})
	return h
}
