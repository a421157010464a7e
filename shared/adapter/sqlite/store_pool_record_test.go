package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestChangedPoolCountsAtTheCommit checks that a decision acquires no slot if it read the
// pool's limit before the change.
func TestChangedPoolCountsAtTheCommit(t *testing.T) {
	t.Parallel()
	store, _, now := setupStore(t, filepath.Join(t.TempDir(), "sortie.db"))
	pool := platform.Pool{Tenant: "acme", ID: "pool"}
	save := func(change func(platform.Pool) platform.Pool) {
		t.Helper()
		pool = change(pool)
		if err := store.SavePool(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		pool.Version++
	}
	created := 0
	take := func() error {
		t.Helper()
		created++
		w := newRun(fmt.Sprint("run-", created))
		if _, err := store.Create(t.Context(), w, nil); err != nil {
			t.Fatal(err)
		}
		w.Run.Version = 1
		d, err := run.Decide(w.Run, run.Admitted{Pool: "pool", Limit: 3}, now.Now())
		if err != nil {
			t.Fatal(err)
		}
		return store.Commit(t.Context(), port.WriteOf(d))
	}
	wantFull := func(why string) {
		t.Helper()
		if missing, ok := errors.AsType[*port.NoSlot](take()); !ok || missing.Pool != "pool" {
			t.Errorf("%s: got a slot, want none", why)
		}
	}
	resize := func(limit int) func(platform.Pool) platform.Pool {
		return func(p platform.Pool) platform.Pool { return p.Resized(limit, 0, "ann", now.Now()) }
	}
	if err := take(); err != nil {
		t.Fatalf("a pool without a record: got %v, want a slot", err)
	}
	save(resize(1))
	wantFull("limit 1")
	save(resize(0))
	if err := take(); err != nil {
		t.Errorf("no limit in the record: got %v, want the limit of the decision", err)
	}
	save(func(p platform.Pool) platform.Pool { return p.Drain(time.Time{}, "ann", now.Now()) })
	wantFull("draining")
	save(func(p platform.Pool) platform.Pool { return p.Resume("ann", now.Now()) })
	if err := take(); err != nil {
		t.Errorf("resumed: got %v, want a slot", err)
	}
	save(resize(10))
	wantFull("a decision with limit 3")
}
