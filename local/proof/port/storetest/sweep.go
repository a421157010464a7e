package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// completed creates a run, moves it to its end with an output, and returns it.
func (s *storeTest) completed(r run.Run) run.Run {
	s.Helper()
	created := s.apply(s.create(r), admitted("default", 0))
	return s.apply(s.apply(created, startFacts("m")...), successFacts()...)
}

// pagesOf reads pages of references until limit are found or no page is left.
func (s *storeTest) pagesOf(
	read func(ctx context.Context, now time.Time, after string, limit int) ([]run.Ref, string, error), now time.Time, limit int,
) (found []string) {
	s.Helper()
	after := ""
	for range 1000 {
		refs, next, err := read(s.ctx, now, after, limit)
		s.ok(err)
		if len(refs) > limit {
			s.Fatalf("limit %d: got %d runs", limit, len(refs))
		}
		found = append(found, idsOfRefs(refs)...)
		if next == "" || len(found) >= limit {
			return found[:min(len(found), limit)]
		}
		after = next
	}
	s.Fatal("got a place after 1000 pages, want the end")
	return nil
}

// dueInPages reads more due runs than fit into a page. Other runs between them are not due yet.
func dueInPages(s *storeTest) {
	start := s.now
	var want []string
	for i := range 30 {
		s.now = start.Add(time.Duration(i%7) * time.Second)
		r := s.create(sample("acme", fmt.Sprintf("run-%02d", i)))
		if i%3 == 0 {
			s.apply(r, admitted("default", 0)) // is due after its start limit
			continue
		}
		want = append(want, r.ID)
	}
	due := start.Add(time.Minute)
	for _, limit := range []int{1, 4, 30, 100} {
		var got []string
		after := ""
		for range 100 {
			refs, next, err := s.store.Due(s.ctx, due, after, limit)
			s.ok(err)
			got = append(got, idsOfRefs(refs)...)
			if after = next; next == "" {
				break
			}
		}
		if after != "" {
			s.Fatalf("limit %d: got a place after 100 pages, want the end", limit)
		}
		slices.Sort(got)
		s.same(want, got)
	}
	// A run whose check was deferred is not the first one again.
	s.now = due
	first := s.pagesOf(s.store.Due, due, 1)
	r, err := s.store.Load(s.ctx, run.Ref{Tenant: "acme", ID: first[0]})
	s.ok(err)
	s.apply(r, run.RepairFailed{})
	if got := s.pagesOf(s.store.Due, due, 100); len(got) != len(want)-1 || slices.Contains(got, first[0]) {
		s.Fatalf("got %v due after a failed repair of %s, want the others", got, first[0])
	}
}

func dueInOrder(s *storeTest) {
	start := s.now
	var want []string
	for i := range 5 {
		s.now = start.Add(time.Duration(i) * time.Hour)
		r := s.create(sample([]string{"acme", "zenith"}[i%2], fmt.Sprint(9-i)))
		want = append(want, r.ID)
	}
	last, err := s.store.Load(s.ctx, run.Ref{Tenant: "acme", ID: want[4]})
	s.ok(err)
	at := last.Execution.ActBy
	for limit := range 7 {
		s.same(want[:min(limit, 5)], s.pagesOf(s.store.Due, at.Add(time.Second), limit))
	}
	s.same(want[:4], s.pagesOf(s.store.Due, at.Add(-time.Nanosecond), 10))
	s.same(want, s.pagesOf(s.store.Due, at, 10))
	// After progress of the execution, the run is due later.
	s.now = at
	acted := s.apply(last, run.ExecutionChecked{Done: true})
	s.same(want[:4], s.pagesOf(s.store.Due, at.Add(time.Second), 10))
	// An ended run is never due.
	ended := s.apply(acted, cancel())
	if ended = s.apply(ended, run.ExecutionChecked{Done: true}); !ended.Execution.ActBy.IsZero() {
		s.Fatal("got the finished run as due")
	}
	s.same(want[:4], s.pagesOf(s.store.Due, at.Add(century), 10))
}

func withMachine(s *storeTest) {
	var want []port.Placement
	for _, tenant := range []string{"zenith", "acme"} {
		for i := range 4 {
			r := s.apply(s.create(sample(tenant, fmt.Sprint("run-", 4-i))), admitted("default", 0))
			facts := startFacts("m")
			if i%2 == 0 {
				r = s.apply(r, facts...)
			} else {
				r = s.apply(r, facts[:2]...)
			}
			want = append(want, port.PlacementOf(r))
		}
		// These runs have no machine yet, or have released it.
		s.create(sample(tenant, "run-5"))
		s.apply(s.create(sample(tenant, "run-6")), admitted("default", 0))
		s.completed(sample(tenant, "run-7"))
		ending := s.apply(s.create(sample(tenant, "run-8")), admitted("default", 0))
		s.apply(s.apply(ending, startFacts("m")...), successFacts()[0])
	}
	slices.SortFunc(want, func(a, b port.Placement) int {
		if a.Run.Tenant+a.Run.ID < b.Run.Tenant+b.Run.ID {
			return -1
		}
		return 1
	})
	for _, limit := range []int{1, 3, 8, 100} {
		var got []port.Placement
		var last run.Ref
		for range 10 {
			part, err := s.store.WithMachine(s.ctx, last, limit)
			s.ok(err)
			if len(part) > limit {
				s.Fatalf("limit %d: got %d runs", limit, len(part))
			}
			if len(part) == 0 {
				break
			}
			got, last = append(got, part...), part[len(part)-1].Run
		}
		s.same(want, got)
	}
}

func outputsDue(s *storeTest) {
	a, b := s.completed(sample("acme", "a")), s.completed(sample("zenith", "b"))
	s.apply(s.create(sample("acme", "none")), cancel())
	want := func(now time.Time, limit int, ids ...string) {
		s.Helper()
		slices.Sort(ids)
		got := s.pagesOf(s.store.OutputsDue, now, limit)
		slices.Sort(got)
		s.same(ids, got)
	}
	want(a.Output.ExpiresAt.Add(-time.Nanosecond), 10)
	want(a.Output.ExpiresAt, 10, "a")
	want(b.Output.ExpiresAt.Add(time.Second), 10, "a", "b")
	if due := s.pagesOf(s.store.OutputsDue, b.Output.ExpiresAt.Add(time.Second), 1); len(due) != 1 {
		s.Fatalf("limit 1: got %v, want one run", due)
	}
	// An earlier expiry applies, and deleted outputs are never due.
	b = s.apply(b, run.OutputExpiring{At: s.now.Add(time.Minute), Message: "downloaded"})
	want(s.now.Add(2*time.Minute), 10, "b")
	b = s.apply(b, run.OutputDeleted{})
	want(b.CreatedAt.Add(century), 10, "a")
	// After a failed deletion, the output is due later.
	s.now = a.Output.ExpiresAt
	a = s.apply(a, run.DeletionFailed{})
	again := a.Deletion.NotBefore
	want(again.Add(-time.Nanosecond), 10)
	want(again, 10, "a")
	s.apply(a, run.OutputDeleted{})
	want(b.CreatedAt.Add(century), 10)
}

// expired creates and cancels a run whose record expires one hour later, and returns it.
func (s *storeTest) expired(tenant, id string) run.Run {
	s.Helper()
	return s.apply(s.create(shortLived(tenant, id)), cancel())
}

func expiredIsNotFound(s *storeTest) {
	live := s.apply(s.create(sample("acme", "living")), cancel())
	gone := s.expired("acme", "gone")
	s.wantNone(gone.Ref())
	for _, id := range []string{gone.TaskID, gone.ID} {
		if _, err := s.store.Find(s.ctx, gone.Tenant, id); !isNotFound(err) {
			s.Errorf("find %q: got %v, want ErrNotFound", id, err)
		}
	}
	for _, state := range []run.State{"", run.Cancelled} {
		got := s.pages("acme", port.Page{State: state, Limit: 1}, func() {})
		s.same([]string{"living"}, got)
	}
	if slices.Contains(s.pagesOf(s.store.Due, s.now.Add(century), 10), gone.ID) {
		s.Error("got an expired run as due")
	}
	s.wantRun(live)
}

func expiredNames(s *storeTest) {
	key := port.IdempotencyKey{Key: "k", Digest: "d1"}
	_, r := s.createWith(shortLived("acme", "a"), key)
	s.apply(r, cancel())
	s.wantNone(r.Ref())
	for _, id := range []string{"a", "another"} {
		again := port.IdempotencyKey{Key: "k", Digest: "digest of " + id}
		first, second := s.createWith(shortLived("acme", id), again)
		if !first || second.ID != id {
			s.Fatalf("got the expired run %+v by the key", second)
		}
		s.wantRun(second)
		if events := s.events(second.Ref()); len(events) != 1 {
			s.Fatalf("got events %+v of the old run", events)
		}
		if first, known := s.createWith(sample("acme", "b"), again); first || known.ID != id {
			s.Fatalf("got %+v by the key, want the new run", known)
		}
		s.apply(second, cancel())
	}
	// A new run with the ID of the expired run does not get its key.
	s.create(sample("acme", "another"))
	if first, other := s.createWith(sample("acme", "c"), port.IdempotencyKey{Key: "k", Digest: "digest of c"}); !first {
		s.Fatalf("got %+v by the expired run's key, want a new run", other)
	}
}

func purgeExpired(s *storeTest) {
	live := s.apply(s.create(sample("acme", "living")), cancel())
	running := s.apply(s.create(sample("acme", "running")), admitted("default", 2))
	var last run.Run
	for i := range 7 {
		last = s.expired([]string{"acme", "zenith"}[i%2], fmt.Sprint("gone-", i))
	}
	purge := func(now time.Time, limit, want int) {
		s.Helper()
		if got, err := s.store.Purge(s.ctx, now, limit); err != nil || got != want {
			s.Fatalf("got %d purged, %v; want %d", got, err, want)
		}
	}
	purge(s.now.Add(time.Minute), 10, 0)
	after := s.now.Add(2 * time.Hour)
	purge(after, 0, 0)
	purge(after, 3, 3)
	purge(last.ExpiresAt.Add(-time.Nanosecond), 10, 3)
	purge(last.ExpiresAt, 10, 1)
	purge(after, 10, 0)
	s.wantRun(live)
	s.wantRun(running)
	s.wantPools(acme("default", 1, 0))
	purge(live.ExpiresAt.Add(time.Hour), 10, 1)
	s.wantNone(live.Ref())
	s.wantRun(running)
	// A purged run leaves no events and no key.
	s.create(sample("acme", "living"))
	s.events(live.Ref())
}

func purgeKeepsOutputs(s *storeTest) {
	r := s.completed(sample("acme", "a"))
	later := r.ExpiresAt.Add(time.Hour)
	if n, err := s.store.Purge(s.ctx, later, 10); err != nil || n != 0 {
		s.Fatalf("got %d purged, %v; want 0 while the output exists", n, err)
	}
	s.wantRun(r)
	s.apply(r, run.OutputDeleted{})
	if n, err := s.store.Purge(s.ctx, later, 10); err != nil || n != 1 {
		s.Fatalf("got %d purged, %v; want 1", n, err)
	}
	s.wantNone(r.Ref())
}

// heldRunsStay pins runs that have ended. They are found, also by a task id of their own, and due
// for a check only.
func heldRunsStay(s *storeTest) {
	other := shortLived("acme", "fired")
	other.TaskID = "job_fired"
	for _, first := range []run.Run{shortLived("acme", "ad hoc"), other} {
		r := s.apply(s.create(first), cancel())
		expiry := r.ExpiresAt
		r = s.apply(r, run.PinChanged{Pinned: true, By: run.Actor{Subject: "me"}})
		if due := s.pagesOf(s.store.OutputsDue, r.BytesDue(), 10); !slices.Contains(due, r.ID) {
			s.Errorf("got %v due at %s, want %s", due, r.BytesDue(), r.ID)
		}
		s.now = expiry.Add(century)
		if n, err := s.store.Purge(s.ctx, s.now, 10); err != nil || n != 0 {
			s.Fatalf("got %d purged, %v; want 0 while the run is pinned", n, err)
		}
		if found, err := s.store.Find(s.ctx, r.Tenant, r.TaskID); err != nil || found.ID != r.ID {
			s.Fatalf("got %s, %v; want %s", found.ID, err, r.ID)
		}
		r = s.apply(r, run.RetentionChecked{})
		r = s.apply(r, run.PinChanged{By: run.Actor{Subject: "me"}})
		if n, err := s.store.Purge(s.ctx, r.ExpiresAt.Add(time.Second), 10); err != nil || n != 1 {
			s.Fatalf("got %d purged, %v; want 1 after the run is unpinned", n, err)
		}
		s.wantNone(r.Ref())
	}
}

// heldChildrenStay ends children of a run. They are found by their own task ids and due for a check
// until their parent has ended, also with an end that was long before.
func heldChildrenStay(s *storeTest) {
	for number, waits := range []int{0, 1, 3} {
		r := shortLived("acme", fmt.Sprintf("fan:16.%d", number))
		r.TaskID, r.JobID, r.JobVersion, r.Child = fmt.Sprintf("job_child_%d", number), "fan", 1, &fan.Child{Parent: "fan:16", Number: number}
		r = s.apply(s.create(r), cancel())
		if !r.Held || !r.ExpiresAt.IsZero() {
			s.Fatalf("got an ended child that expires at %s, want a held one", r.ExpiresAt)
		}
		for range waits {
			s.now = r.BytesDue()
			if due := s.pagesOf(s.store.OutputsDue, s.now, 10); !slices.Contains(due, r.ID) {
				s.Errorf("got %v due at %s, want %s", due, s.now, r.ID)
			}
			r = s.apply(r, run.RetentionChecked{Awaited: true})
			if due := s.pagesOf(s.store.OutputsDue, s.now, 10); slices.Contains(due, r.ID) {
				s.Errorf("got %s due at %s, want it to wait until %s", r.ID, s.now, r.BytesDue())
			}
		}
		s.now = s.now.Add(century)
		if n, err := s.store.Purge(s.ctx, s.now, 10); err != nil || n != 0 {
			s.Fatalf("got %d purged, %v; want 0 while the parent runs", n, err)
		}
		if found, err := s.store.Find(s.ctx, r.Tenant, r.TaskID); err != nil || found.ID != r.ID || found.Child == nil || found.Child.Parent != "fan:16" {
			s.Fatalf("got %s, %v; want %s with its parent", found.ID, err, r.ID)
		}
		if r = s.apply(r, run.RetentionChecked{ParentEndedAt: s.now}); r.Held || !r.ExpiresAt.After(s.now) {
			s.Fatalf("got held %v and the expiry %s after the end of the parent, want a later one", r.Held, r.ExpiresAt)
		}
		if n, err := s.store.Purge(s.ctx, r.ExpiresAt.Add(time.Second), 10); err != nil || n != 1 {
			s.Fatalf("got %d purged, %v; want the child", n, err)
		}
		s.wantNone(r.Ref())
	}
}
