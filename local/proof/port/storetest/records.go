package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

func createdIsReadBack(s *storeTest) {
	for _, r := range []run.Run{
		sample("acme", "export_mods_1_ab"),
		sample("acme", "nightly job:2001-02-03T04:05:06Z"),
		sample("acme", "id with \x00, ' and % "+strings.Repeat("x", 200)),
		{Tenant: "acme", ID: "bare", TaskID: "bare"},
	} {
		if r.ID == "bare" {
			r.ScheduledAt, r.Labels = s.now.Add(time.Hour), map[string]string{"team": "data", "example.org/tier": ""}
		}
		want := s.create(r)
		if want.Version != 1 {
			s.Fatalf("got version %d of a new run", want.Version)
		}
		s.wantRun(want)
		got, err := s.store.Find(s.ctx, r.Tenant, r.TaskID)
		s.ok(err)
		s.same(want, got)
		got, err = s.store.Find(s.ctx, r.Tenant, r.ID)
		s.ok(err)
		s.same(want, got)
		if events := s.events(r.Ref()); len(events) != 1 || events[0].Type != run.EventAccepted {
			s.Fatalf("got events %+v of a new run", events)
		}
	}
}

func committedIsReadBack(s *storeTest) {
	r := s.create(sample("acme", "a"))
	facts := append([]run.Fact{enqueued("default", 3), granted(3)},
		run.TokenStored{Step: run.StepContainerCreating, Generation: 2, Token: strings.Repeat("t", 1024)},
		run.MachineCreated{Attempt: 1, Machine: platform.Machine{ID: "m1"}}, run.MachineRunning{Attempt: 1})
	facts = append(facts, lostFacts()...)
	facts = append(facts, run.Relabelled{Change: label.Of(map[string]string{"team": "data", "env": ""})}, run.Relabelled{Change: label.Change{"env": nil}})
	for _, f := range facts {
		before := r.Version
		if r = s.apply(r, f); r.Version != before+1 {
			s.Fatalf("got version %d to %d, want an increment by one", before, r.Version)
		}
		s.wantRun(r)
		if events := s.events(r.Ref()); len(events) != r.EventCount {
			s.Fatalf("after %T: got %d events, want %d", f, len(events), r.EventCount)
		}
	}
}

func notFound(s *storeTest) {
	s.create(sample("acme", "a"))
	for _, ref := range []run.Ref{{}, {Tenant: "acme"}, {Tenant: "acme", ID: "A"}, {Tenant: "acme", ID: "a "}, {ID: "a"}} {
		s.wantNone(ref)
	}
	for _, task := range []string{"", "A", "TASK OF A"} {
		if _, err := s.store.Find(s.ctx, "acme", task); !isNotFound(err) {
			s.Errorf("id %q: got %v, want ErrNotFound", task, err)
		}
	}
	w := s.decide(after(port.WriteOf(run.New(sample("acme", "ghost"), s.now))), cancel())
	if err := s.store.Commit(s.ctx, w); !isConflict(err) {
		s.Errorf("commit of an unknown run: got %v", err)
	}
	s.wantNone(w.Run.Ref())
}

func tenantsAreIsolated(s *storeTest) {
	mine, other := s.create(sample("acme", "a")), s.create(sample("zenith", "a"))
	mine = s.apply(mine, cancel())
	s.wantRun(mine)
	s.wantRun(other)
	for tenant, want := range map[string]run.Run{"acme": mine, "zenith": other} {
		got, err := s.store.Find(s.ctx, tenant, want.TaskID)
		s.ok(err)
		s.same(want, got)
		runs, _, err := s.store.List(s.ctx, tenant, port.Page{Limit: 10})
		s.ok(err)
		s.same([]run.Run{want}, runs)
	}
	if runs, _, err := s.store.List(s.ctx, "", port.Page{Limit: 10}); err != nil || len(runs) != 0 {
		s.Errorf("empty tenant: got %v, %v; want an empty list", idsOf(runs), err)
	}
}

func idIsUnique(s *storeTest) {
	first := s.create(sample("acme", "a"))
	again := sample("acme", "a")
	again.Work.PI = "another"
	_, err := s.store.Create(s.ctx, port.WriteOf(run.New(again, s.later())), nil)
	if !isConflict(err) {
		s.Fatalf("second run with the same id: got %v", err)
	}
	s.wantRun(first)
	if events := s.events(first.Ref()); len(events) != 1 {
		s.Fatalf("got events %+v of the refused run", events)
	}
	won := s.race(20, func(int) error {
		_, err := s.store.Create(s.ctx, port.WriteOf(run.New(sample("acme", "b"), s.now)), nil)
		return err
	}, isConflict)
	if won != 1 {
		s.Fatalf("got %d runs with one id, want 1", won)
	}
}

// createWith creates a run with an idempotency key and returns the record that the key then
// identifies.
func (s *storeTest) createWith(r run.Run, key port.IdempotencyKey) (first bool, stored run.Run) {
	s.Helper()
	known, findErr := s.store.FindByKey(s.ctx, r.Tenant, key)
	w := port.WriteOf(run.New(r, s.later()))
	existing, err := s.store.Create(s.ctx, w, &key)
	s.ok(err)
	if existing != nil {
		s.ok(findErr)
		s.same(*existing, known)
		return false, *existing
	}
	if !errors.Is(findErr, port.ErrNotFound) {
		s.Fatalf("key %q: found %+v, %v before its first use, want ErrNotFound", key.Key, known, findErr)
	}
	return true, after(w)
}

func knownKey(s *storeTest) {
	for _, name := range []string{"k", strings.Repeat("漢", 255), "K"} {
		key := port.IdempotencyKey{Key: name, Digest: "d1"}
		first, want := s.createWith(sample("acme", "first under "+name), key)
		if !first {
			s.Fatalf("key %q: got an existing run at its first use", name)
		}
		want = s.apply(want, admitted("default", 0))
		for _, id := range []string{"second under " + name, want.ID} {
			first, got := s.createWith(sample("acme", id), key)
			if first {
				s.Fatalf("key %q: got a second run, want the first", name)
			}
			s.same(want, got)
		}
		s.wantNone(run.Ref{Tenant: "acme", ID: "second under " + name})
		s.wantRun(want)
	}
	if first, _ := s.createWith(sample("zenith", "z"), port.IdempotencyKey{Key: "k", Digest: "d2"}); !first {
		s.Fatal("got the run of another tenant")
	}
}

func takenKey(s *storeTest) {
	key := port.IdempotencyKey{Key: "k", Digest: "d1"}
	_, want := s.createWith(sample("acme", "a"), key)
	for _, digest := range []string{"d2", "", "D1"} {
		w := port.WriteOf(run.New(sample("acme", "b"), s.later()))
		existing, err := s.store.Create(s.ctx, w, &port.IdempotencyKey{Key: "k", Digest: digest})
		if !errors.Is(err, port.ErrKeyTaken) || existing != nil {
			s.Fatalf("another digest: got %v, %v; want ErrKeyTaken", existing, err)
		}
		if found, err := s.store.FindByKey(s.ctx, "acme", port.IdempotencyKey{Key: "k", Digest: digest}); !errors.Is(err, port.ErrKeyTaken) {
			s.Fatalf("search with another digest: got %+v, %v; want ErrKeyTaken", found, err)
		}
	}
	s.wantNone(run.Ref{Tenant: "acme", ID: "b"})
	s.wantRun(want)
	// A failed creation does not use up the key.
	fresh := port.IdempotencyKey{Key: "fresh", Digest: "d"}
	if _, err := s.store.Create(s.ctx, port.WriteOf(run.New(sample("acme", "a"), s.later())), &fresh); !isConflict(err) {
		s.Fatalf("existing id under a new key: got %v", err)
	}
	if first, _ := s.createWith(sample("acme", "c"), fresh); !first {
		s.Fatal("got an existing run, want the key free after a failed creation")
	}
}

func keyRace(s *storeTest) {
	key := port.IdempotencyKey{Key: "k", Digest: "d"}
	var mu sync.Mutex
	created, returned := map[string]bool{}, map[string]bool{}
	won := s.race(20, func(i int) error {
		id := fmt.Sprintf("run-%02d", i)
		existing, err := s.store.Create(s.ctx, port.WriteOf(run.New(sample("acme", id), s.now)), &key)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && existing == nil {
			created[id] = true
		} else if err == nil {
			returned[existing.ID] = true
		}
		return err
	}, func(error) bool { return false })
	if won != 20 || len(created) != 1 || len(returned) != 1 {
		s.Fatalf("got created %v, returned %v", created, returned)
	}
	for id := range created {
		if !returned[id] {
			s.Fatalf("got created %v, returned %v", created, returned)
		}
	}
	runs, _, err := s.store.List(s.ctx, "acme", port.Page{Limit: 100})
	if err != nil || len(runs) != 1 {
		s.Fatalf("got runs %v, %v; want one run", idsOf(runs), err)
	}
}

// wantConflict checks that err is a conflict of the run.
func (s *storeTest) wantConflict(err error, ref run.Ref) {
	s.Helper()
	conflict, ok := errors.AsType[*port.Conflict](err)
	if !ok || !isConflict(err) || conflict.Ref != ref {
		s.Fatalf("got %v, want a conflict of run %s", err, ref.ID)
	}
}

func staleCommit(s *storeTest) {
	old := s.create(sample("acme", "a"))
	now := s.apply(old, admitted("default", 0))
	s.wantConflict(s.store.Commit(s.ctx, s.decide(old, cancel())), old.Ref())
	ahead := now
	ahead.Version++
	s.wantConflict(s.store.Commit(s.ctx, s.decide(ahead, cancel())), old.Ref())
	s.wantRun(now)
	if events := s.events(now.Ref()); len(events) != now.EventCount {
		s.Fatalf("got events %+v after failed commits", events)
	}
	s.wantRun(s.apply(now, cancel()))
}

func commitRace(s *storeTest) {
	r := s.create(sample("acme", "a"))
	for range 5 {
		w := s.decide(r, run.Restarted{Start: r.Execution.Start, Cause: "lost"})
		if won := s.race(20, func(int) error { return s.store.Commit(s.ctx, w) }, isConflict); won != 1 {
			s.Fatalf("got %d of 20 commits on one version applied, want 1", won)
		}
		s.wantRun(after(w))
		if r = after(w); r.State.Terminal() {
			break
		}
	}
	if events := s.events(r.Ref()); len(events) != r.EventCount {
		s.Fatalf("got %d events, want %d", len(events), r.EventCount)
	}
}

func commitIsAtomic(s *storeTest) {
	a, b, c := s.create(sample("acme", "a")), s.create(sample("acme", "b")), s.create(sample("zenith", "c"))
	stale := b
	b = s.apply(b, enqueued("p", 1))
	for _, order := range [][]run.Run{{a, stale, c}, {stale, a, c}, {a, c, stale}} {
		writes := make([]port.Write, len(order))
		for i, r := range order {
			writes[i] = s.decide(r, cancel())
		}
		s.wantConflict(s.store.Commit(s.ctx, writes...), b.Ref())
		for _, r := range []run.Run{a, b, c} {
			s.wantRun(r)
			if events := s.events(r.Ref()); len(events) != r.EventCount {
				s.Fatalf("got events %+v after a failed commit", events)
			}
		}
	}
	writes := []port.Write{s.decide(a, cancel()), s.decide(b, cancel()), s.decide(c, cancel())}
	s.ok(s.store.Commit(s.ctx, writes...))
	for _, w := range writes {
		s.wantRun(after(w))
	}
	s.wantPools()
}

func eventsInOrder(s *storeTest) {
	r := s.create(sample("acme", "a"))
	other := s.create(sample("acme", "b"))
	want := s.events(r.Ref())
	for _, f := range append(append([]run.Fact{admitted("default", 0)}, startFacts("m")...), successFacts()...) {
		w := s.decide(r, f)
		s.ok(s.store.Commit(s.ctx, w))
		r, want = after(w), append(want, w.Events...)
		other = s.apply(other, run.ExecutionChecked{})
	}
	s.same(want, s.events(r.Ref()))
	for after := range len(want) + 2 {
		for _, limit := range []int{1, 2, 100} {
			got, err := s.store.Events(s.ctx, r.Ref(), after, limit)
			s.ok(err)
			from := min(after, len(want))
			s.same(want[from:min(from+limit, len(want))], got)
		}
	}
	if events := s.events(other.Ref()); len(events) != 1 {
		s.Fatalf("got events %+v of the other run", events)
	}
}

// race calls try in n goroutines and returns the number of calls that succeeded. An error for
// which lost returns false fails the test.
func (s *storeTest) race(n int, try func(i int) error, lost func(error) bool) (won int) {
	s.Helper()
	start := make(chan struct{})
	results := make(chan error, n)
	for i := range n {
		go func() {
			<-start
			results <- try(i)
		}()
	}
	close(start)
	for range n {
		if err := <-results; err == nil {
			won++
		} else if !lost(err) {
			s.Errorf("in the race: %v", err)
		}
	}
	return won
}
