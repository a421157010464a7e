package fake_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/sqlitetest"
	"github.com/sortie-dev/sortie/local/proof/port/storetest"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

var newYear = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func inner(t *testing.T) *sqlite.Store {
	t.Helper()
	db, err := sqlitetest.Open(t.Context(), filepath.Join(sqlitetest.Folder(t), "sortie.db"))
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

// The suite calls its store incorrectly on purpose, so the reports are dropped.
func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) port.Store {
		return fake.NewStore(inner(t), nil, func(error) {})
	})
}

func newRun(id string) port.Write {
	return port.WriteOf(run.New(run.Run{
		Tenant: "acme", ID: id, TaskID: id, Work: spec.Work{Options: []byte("{}")},
		Policy: spec.Policy{RecordRetention: time.Hour, QueueTimeout: time.Hour},
	}, newYear))
}

func TestStoreFailsInBothWays(t *testing.T) {
	t.Parallel()
	behind := inner(t)
	plan := fake.Script(fake.Lost, fake.Unsure, fake.Applied, fake.Lost, fake.Unsure)
	store := fake.NewStore(behind, plan, func(err error) { t.Error(err) })
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
	fates := func(seed uint64) (all []fake.Fate) {
		plan := fake.Seeded(seed, 0.2)
		for n := range 1000 {
			all = append(all, plan(fake.Call{Number: n, Write: true}))
		}
		return all
	}
	if !slices.Equal(fates(1), fates(1)) || slices.Equal(fates(1), fates(2)) {
		t.Fatal("a plan is not its seed's own")
	}
	counts := map[fake.Fate]int{}
	for _, fate := range fates(1) {
		counts[fate]++
	}
	for _, fate := range []fake.Fate{fake.Lost, fake.Unsure} {
		if counts[fate] < 50 || counts[fate] > 150 {
			t.Errorf("of 1000 calls %d have the fate %d", counts[fate], fate)
		}
	}
}

// TestAPatientCallerGetsThrough uses the wrapper for its purpose. A caller that reads again
// after every failure brings its runs to their ends.
func TestAPatientCallerGetsThrough(t *testing.T) {
	t.Parallel()
	store := fake.NewStore(inner(t), fake.Seeded(7, 0.4), func(err error) { t.Error(err) })
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

func TestStoreReportsMisuse(t *testing.T) {
	t.Parallel()
	commit := func(change func(*port.Write)) func(*fake.Store, run.Run) {
		return func(s *fake.Store, r run.Run) {
			d, err := run.Decide(r, run.Enqueued{Pool: "p", Limit: 1}, newYear)
			if err != nil {
				panic(err)
			}
			w := port.WriteOf(d)
			change(&w)
			_ = s.Commit(t.Context(), w)
		}
	}
	create := func(change func(*port.Write), key string) func(*fake.Store, run.Run) {
		return func(s *fake.Store, _ run.Run) {
			w := newRun("b")
			change(&w)
			_, _ = s.Create(t.Context(), w, &port.IdempotencyKey{Key: key})
		}
	}
	createBegun := func(change func(*port.Write)) func(*fake.Store, run.Run) {
		return create(func(w *port.Write) {
			r := w.Run
			r.Work = spec.Work{Kind: spec.KindInference, Inference: &spec.Inference{Model: "m", Request: []byte(`{}`)}}
			d, err := run.NewWith(r, newYear, run.Admitted{Pool: "p", Limit: 1}, run.WorkerContacted{Attempt: 1, WorkerID: "w", Started: true})
			if err != nil {
				panic(err)
			}
			*w = port.WriteOf(d)
			change(w)
		}, "k")
	}
	nothing := func(*port.Write) {}
	stored := job.Job{Tenant: "acme", ID: "j", Version: 1, CreatedAt: newYear}
	save := func(change func(*job.Job)) func(*fake.Store, run.Run) {
		return func(s *fake.Store, _ run.Run) {
			j := stored
			change(&j)
			_ = s.SaveJob(t.Context(), j)
		}
	}
	fire := func(change func(*port.Write)) func(*fake.Store, run.Run) {
		return func(s *fake.Store, _ run.Run) {
			w := newRun("b")
			w.Run.JobID, w.Run.JobVersion = "j", 1
			change(&w)
			_ = s.FireJob(t.Context(), stored, w)
		}
	}
	tests := []struct {
		name string
		do   func(*fake.Store, run.Run)
		want string // "" is no misuse
	}{
		{"a correct commit", commit(nothing), ""},
		{"a correct create", create(nothing, "k"), ""},
		{"an old version", commit(func(w *port.Write) { w.Run.Version = 1 }), ""},
		{"a version that never returned", commit(func(w *port.Write) { w.Run.Version = 3 }), "on version 3"},
		{"version zero", commit(func(w *port.Write) { w.Run.Version = 0 }), "on version 0"},
		{"a run that never returned", commit(func(w *port.Write) { w.Run.ID = "x" }), "never returned"},
		{"a missing event", commit(func(w *port.Write) { w.Events = nil }), "event count changes from"},
		{"a gap in the numbers", commit(func(w *port.Write) { w.Events[0].Seq++ }), "want number 2"},
		{"a decreasing event count", commit(func(w *port.Write) { w.Events, w.Run.EventCount = nil, 0 }), "event count changes from 1 to 0"},
		{"an event without an id", commit(func(w *port.Write) { w.Events[0].ID = "" }), "want number"},
		{"a state that no event leads to", commit(func(w *port.Write) { w.Run.State = run.Failed }), "its events lead to Pending"},
		{"an illegal transition", commit(func(w *port.Write) {
			w.Run.State, w.Events[0].State = run.Running, run.Running
		}), "from Pending to Running"},
		{"a slot without its lease change", commit(func(w *port.Write) { w.Lease = "" }), "lease change"},
		{"a wrong lease change", commit(func(w *port.Write) { w.Lease = run.LeaseTake }), "lease change"},
		{"no writes", func(s *fake.Store, _ run.Run) { _ = s.Commit(t.Context()) }, "an empty commit"},
		{"a run twice", func(s *fake.Store, r run.Run) {
			d, err := run.Decide(r, run.CancelRequested{}, newYear)
			if err != nil {
				panic(err)
			}
			_ = s.Commit(t.Context(), port.WriteOf(d), port.WriteOf(d))
		}, "twice in one commit"},
		{"an empty key", create(nothing, ""), "a key of 0 characters"},
		{"a long key", create(nothing, strings.Repeat("k", 256)), "a key of 256 characters"},
		{"a new run with a version", create(func(w *port.Write) { w.Run.Version = 1 }, "k"), "with version 1"},
		{"a new run in Running", create(func(w *port.Write) { w.Run.State = run.Running }, "k"), "in Running"},
		{"a new task with its slot and its worker", createBegun(nothing), ""},
		{"a new task without its lease change", createBegun(func(w *port.Write) { w.Lease = "" }), "lease change"},
		{"a new task without a heartbeat item", createBegun(func(w *port.Write) { w.Heartbeat = run.HeartbeatChange{} }), "heartbeat item"},
		{"a new run without an event", create(func(w *port.Write) { w.Events = nil }, "k"), "first event"},
		{"a slot of a job without its lease change", commit(func(w *port.Write) {
			w.Run.JobSlot = platform.Slot{Pool: "job/j", Limit: 1, State: platform.SlotHeld}
		}), "of its job"},
		{"another job", commit(func(w *port.Write) { w.Run.JobID = "j" }), "which was"},
		{"a correct job", save(func(*job.Job) {}), ""},
		{"a job without an id", save(func(j *job.Job) { j.ID = "" }), "an id"},
		{"a new job with version 2", save(func(j *job.Job) { j.Version = 2 }), "version 2 on revision 0"},
		{"a job that wakes too early", save(func(j *job.Job) { j.NextAt, j.WakeAt = newYear, newYear.Add(-time.Second) }), "wakes before"},
		{"a firing", fire(nothing), ""},
		{"a skipped firing", fire(func(w *port.Write) { w.Run.State, w.Run.Skipped = run.Completed, true }), ""},
		{"a firing of another job", fire(func(w *port.Write) { w.Run.JobID = "k" }), "of job k"},
		{"a new run without a task", create(func(w *port.Write) { w.Run.TaskID = "" }, "k"), "a task id"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var reports []string
			store := fake.NewStore(inner(t), nil, func(err error) { reports = append(reports, err.Error()) })
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
			all := strings.Join(reports, "\n")
			if (test.want == "") != (all == "") || !strings.Contains(all, test.want) {
				t.Fatalf("got reports %q, want %q", all, test.want)
			}
		})
	}
}
