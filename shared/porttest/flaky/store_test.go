package flaky_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/porttest"
	"github.com/sortie-dev/sortie/shared/porttest/flaky"
	"github.com/sortie-dev/sortie/shared/run"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var newYear = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func inner(t *testing.T) port.Store {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "sortie.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := sqlite.NewStore(t.Context(), db, clock.NewVirtual(newYear))
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// The suite misuses its store on purpose, and sees nothing of the witness.
func TestWithoutAPlanItIsAStore(t *testing.T) {
	t.Parallel()
	porttest.Store(t, func(t *testing.T) port.Store {
		return flaky.New(inner(t), nil, func(error) {})
	})
}

func newRun(id string) port.Write {
	return port.WriteOf(run.New(run.Run{
		Tenant: "acme", ID: id, TaskID: id, Work: run.Work{Options: []byte("{}")},
		Policy: run.Policy{RecordRetention: time.Hour, QueueTimeout: time.Hour},
	}, newYear))
}

func TestItFailsInBothWays(t *testing.T) {
	t.Parallel()
	behind := inner(t)
	plan := flaky.Script(flaky.Lost, flaky.Unsure, flaky.Applied, flaky.Lost, flaky.Unsure)
	store := flaky.New(behind, plan, func(err error) { t.Error(err) })
	tests := []struct {
		id            string
		failed, there bool
	}{{"lost", true, false}, {"unsure", true, true}, {"made", false, true}}
	for _, test := range tests {
		_, err := store.Create(t.Context(), newRun(test.id), nil)
		if fault.Is(err, fault.Unavailable) != test.failed {
			t.Errorf("%s: %v", test.id, err)
		}
		_, err = behind.Load(t.Context(), run.Ref{Tenant: "acme", ID: test.id})
		if errors.Is(err, port.ErrNotFound) == test.there {
			t.Errorf("%s: then %v", test.id, err)
		}
	}
	cancel := func() error {
		r, err := store.Load(t.Context(), run.Ref{Tenant: "acme", ID: "made"})
		if err != nil {
			t.Fatal(err)
		}
		d, err := run.Decide(r, run.CancelRequested{}, newYear)
		if err != nil {
			t.Fatal(err)
		}
		if !d.Changed {
			return nil
		}
		return store.Commit(t.Context(), port.WriteOf(d))
	}
	for i, failed := range []bool{true, true, false} {
		if err := cancel(); fault.Is(err, fault.Unavailable) != failed {
			t.Errorf("cancel %d: %v", i, err)
		}
	}
	if lost, unsure := store.Failures(); lost != 2 || unsure != 2 {
		t.Errorf("counted %d lost, %d unsure", lost, unsure)
	}
}

func TestASeedIsAPlan(t *testing.T) {
	t.Parallel()
	fates := func(seed uint64) (all []flaky.Fate) {
		plan := flaky.Seeded(seed, 0.2)
		for n := range 1000 {
			all = append(all, plan(flaky.Call{Number: n, Write: true}))
		}
		return all
	}
	if !slices.Equal(fates(1), fates(1)) || slices.Equal(fates(1), fates(2)) {
		t.Fatal("a plan is not its seed's own")
	}
	counts := map[flaky.Fate]int{}
	for _, fate := range fates(1) {
		counts[fate]++
	}
	for _, fate := range []flaky.Fate{flaky.Lost, flaky.Unsure} {
		if counts[fate] < 50 || counts[fate] > 150 {
			t.Errorf("of 1000 calls %d have the fate %d", counts[fate], fate)
		}
	}
}

// TestAPatientCallerGetsThrough is what the wrapper is for: a caller that reads
// again after every failure brings its runs to their ends.
func TestAPatientCallerGetsThrough(t *testing.T) {
	t.Parallel()
	store := flaky.New(inner(t), flaky.Seeded(7, 0.4), func(err error) { t.Error(err) })
	for i := range 20 {
		ref := run.Ref{Tenant: "acme", ID: fmt.Sprint(i)}
		for {
			_, err := store.Create(t.Context(), newRun(ref.ID), &port.IdempotencyKey{Key: ref.ID})
			if err == nil {
				break
			}
			if !fault.Is(err, fault.Unavailable) {
				t.Fatal(err)
			}
		}
		for {
			r, err := store.Load(t.Context(), ref)
			if err != nil {
				continue
			}
			if r.State.Terminal() {
				break
			}
			var f run.Fact = run.CancelRequested{}
			if r.Slot.State == "" {
				f = run.Enqueued{Pool: "p", Limit: 1}
			}
			d, err := run.Decide(r, f, newYear)
			if err != nil {
				t.Fatal(err)
			}
			_ = store.Commit(t.Context(), port.WriteOf(d))
		}
	}
	if lost, unsure := store.Failures(); lost == 0 || unsure == 0 {
		t.Fatalf("%d lost, %d unsure", lost, unsure)
	}
}

func TestMisuseIsTold(t *testing.T) {
	t.Parallel()
	commit := func(change func(*port.Write)) func(*flaky.Store, run.Run) {
		return func(s *flaky.Store, r run.Run) {
			d, err := run.Decide(r, run.Enqueued{Pool: "p", Limit: 1}, newYear)
			if err != nil {
				panic(err)
			}
			w := port.WriteOf(d)
			change(&w)
			_ = s.Commit(t.Context(), w)
		}
	}
	create := func(change func(*port.Write), key string) func(*flaky.Store, run.Run) {
		return func(s *flaky.Store, _ run.Run) {
			w := newRun("b")
			change(&w)
			_, _ = s.Create(t.Context(), w, &port.IdempotencyKey{Key: key})
		}
	}
	nothing := func(*port.Write) {}
	tests := []struct {
		name string
		do   func(*flaky.Store, run.Run)
		want string // empty: no misuse
	}{
		{"a commit as it should be", commit(nothing), ""},
		{"a create as it should be", create(nothing, "k"), ""},
		{"an old version is a lost race", commit(func(w *port.Write) { w.Run.Version = 1 }), ""},
		{"a version that nobody was shown", commit(func(w *port.Write) { w.Run.Version = 3 }), "on version 3"},
		{"a version of none", commit(func(w *port.Write) { w.Run.Version = 0 }), "on version 0"},
		{"a run that nobody was shown", commit(func(w *port.Write) { w.Run.ID = "x" }), "nobody was shown"},
		{"an event left out", commit(func(w *port.Write) { w.Events = nil }), "events that lead from"},
		{"a gap", commit(func(w *port.Write) { w.Events[0].Seq++ }), "where number 2 belongs"},
		{"a count that goes back", commit(func(w *port.Write) { w.Events, w.Run.EventCount = nil, 0 }), "events that lead from 1 to 0"},
		{"an event without an id", commit(func(w *port.Write) { w.Events[0].ID = "" }), "belongs"},
		{"a state that no event leads to", commit(func(w *port.Write) { w.Run.State = run.Failed }), "its events lead to Pending"},
		{"an illegal transition", commit(func(w *port.Write) {
			w.Run.State, w.Events[0].State = run.Running, run.Running
		}), "from Pending to Running"},
		{"a slot without its lease", commit(func(w *port.Write) { w.Lease = "" }), "lease change"},
		{"another lease", commit(func(w *port.Write) { w.Lease = run.LeaseTake }), "lease change"},
		{"nothing", func(s *flaky.Store, _ run.Run) { _ = s.Commit(t.Context()) }, "a commit of nothing"},
		{"twice", func(s *flaky.Store, r run.Run) {
			d, err := run.Decide(r, run.CancelRequested{}, newYear)
			if err != nil {
				panic(err)
			}
			_ = s.Commit(t.Context(), port.WriteOf(d), port.WriteOf(d))
		}, "twice at once"},
		{"a key of none", create(nothing, ""), "a key of 0 characters"},
		{"a long key", create(nothing, strings.Repeat("k", 256)), "a key of 256 characters"},
		{"a new run with a version", create(func(w *port.Write) { w.Run.Version = 1 }, "k"), "version 1 already"},
		{"a new run further on", create(func(w *port.Write) { w.Run.State = run.Running }, "k"), "in Running"},
		{"a new run without an event", create(func(w *port.Write) { w.Events = nil }, "k"), "first event"},
		{"a new run without a task", create(func(w *port.Write) { w.Run.TaskID = "" }, "k"), "a task id"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var told []string
			store := flaky.New(inner(t), nil, func(err error) { told = append(told, err.Error()) })
			if _, err := store.Create(t.Context(), newRun("a"), nil); err != nil {
				t.Fatal(err)
			}
			r, err := store.Load(t.Context(), run.Ref{Tenant: "acme", ID: "a"})
			if err != nil {
				t.Fatal(err)
			}
			d, err := run.Decide(r, run.ExecutionChecked{}, newYear)
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Commit(t.Context(), port.WriteOf(d)); err != nil {
				t.Fatal(err)
			}
			if r, err = store.Load(t.Context(), r.Ref()); err != nil {
				t.Fatal(err)
			}
			test.do(store, r)
			all := strings.Join(told, "\n")
			if (test.want == "") != (all == "") || !strings.Contains(all, test.want) {
				t.Fatalf("told %q, want %q", all, test.want)
			}
		})
	}
}
