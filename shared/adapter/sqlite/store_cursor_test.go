package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// setupLists returns a store with three runs, and the cursor of their second
// page.
func setupLists(t testing.TB) (port.Store, string) {
	t.Helper()
	store, _, _ := setupStore(t, filepath.Join(t.TempDir(), "sortie.db"))
	for _, id := range []string{"a", "b", "c"} {
		create(t, store, id)
	}
	_, cursor, err := store.List(t.Context(), "acme", port.Page{Limit: 1})
	if err != nil || cursor == "" {
		t.Fatalf("got cursor %q, %v", cursor, err)
	}
	return store, cursor
}

func TestCursorBelongsToItsList(t *testing.T) {
	t.Parallel()
	store, cursor := setupLists(t)
	tests := []struct {
		name   string
		tenant string
		page   port.Page
		field  string
	}{
		{"same list", "acme", port.Page{Cursor: cursor, Limit: 5}, ""},
		{"another tenant", "zenith", port.Page{Cursor: cursor, Limit: 5}, "cursor"},
		{"another filter", "acme", port.Page{Cursor: cursor, Limit: 5, State: run.Pending}, "cursor"},
		{"limit 0", "acme", port.Page{Cursor: cursor}, "limit"},
		{"limit too large", "acme", port.Page{Cursor: cursor, Limit: 1001}, "limit"},
		{"negative limit", "acme", port.Page{Limit: -1}, "limit"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			runs, _, err := store.List(t.Context(), test.tenant, test.page)
			if test.field == "" {
				if err != nil || len(runs) != 2 {
					t.Fatalf("got %d runs, %v", len(runs), err)
				}
				return
			}
			if !fault.Is(err, fault.InvalidRequest) || fault.Of(err).Field != test.field {
				t.Fatalf("got %v, want a fault about %s", err, test.field)
			}
		})
	}
}

func FuzzCursor(f *testing.F) {
	for _, seed := range []string{"", "x", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "GIZ-AAAAAAAAAAAAAAAAAQ", "====", "\x00"} {
		f.Add(seed)
	}
	store, known := setupLists(f)
	f.Fuzz(func(t *testing.T, cursor string) {
		runs, _, err := store.List(t.Context(), "acme", port.Page{Cursor: cursor, Limit: 5})
		if cursor == "" || cursor == known {
			if err != nil || len(runs) < 2 {
				t.Fatalf("got %d runs, %v", len(runs), err)
			}
			return
		}
		if !fault.Is(err, fault.InvalidRequest) || len(runs) > 0 {
			t.Fatalf("cursor %q: got %d runs, %v", cursor, len(runs), err)
		}
	})
}
