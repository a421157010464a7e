package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// wantPools checks that the store returns exactly these pools.
func (s *storeTest) wantPools(want ...port.PoolUse) {
	s.Helper()
	got, err := s.store.Pools(s.ctx)
	s.ok(err)
	slices.SortFunc(got, func(a, b port.PoolUse) int {
		if a.Tenant+"\x00"+a.Pool < b.Tenant+"\x00"+b.Pool {
			return -1
		}
		return 1
	})
	s.same(want, got)
}

func acme(pool string, held, queued int) port.PoolUse {
	return port.PoolUse{Tenant: "acme", Pool: pool, Held: held, Queued: queued}
}

// wantQueue checks the queue of the pool and its length.
func (s *storeTest) wantQueue(pool string, want ...run.Run) {
	s.Helper()
	queue, err := s.store.Queue(s.ctx, "acme", pool, 100)
	s.ok(err)
	s.same(idsOf(want), idsOfRefs(queue))
	for _, most := range []int{1, 2, 100} {
		length, err := s.store.QueueLength(s.ctx, "acme", pool, most)
		s.ok(err)
		s.same(min(len(want), most), length)
	}
	s.wantAhead(pool, want...)
}

// wantAhead checks the number of runs that each run of the queue has ahead of it.
func (s *storeTest) wantAhead(pool string, queue ...run.Run) {
	s.Helper()
	var orders []string
	for _, r := range queue {
		r, err := s.store.Load(s.ctx, r.Ref())
		s.ok(err)
		for _, slot := range []platform.Slot{r.Slot, r.JobSlot, r.KeySlot} {
			if slot.Pool != pool {
				continue
			}
			orders = append(orders, slot.Order())
			for _, most := range []int{1, 2, 100} {
				ahead, err := s.store.QueueAhead(s.ctx, "acme", slot, most)
				s.ok(err)
				s.same(min(slices.Index(orders, slot.Order()), most), ahead)
			}
		}
	}
}

// wantHolders checks which runs hold slots of the pool.
func (s *storeTest) wantHolders(pool string, want ...run.Run) {
	s.Helper()
	holders, err := s.store.Holders(s.ctx, "acme", pool, 100)
	s.ok(err)
	got := idsOfRefs(holders)
	slices.Sort(got)
	ids := idsOf(want)
	slices.Sort(ids)
	s.same(ids, got)
	if few, err := s.store.Holders(s.ctx, "acme", pool, 1); err != nil || len(few) != min(len(want), 1) {
		s.Errorf("got %d holders, %v with limit 1", len(few), err)
	}
}

// wantNoSlot checks that the commit fails with ErrNoSlot and has no effect.
func (s *storeTest) wantNoSlot(before run.Run, writes ...port.Write) {
	s.Helper()
	if err := s.store.Commit(s.ctx, writes...); !isNoSlot(err) {
		s.Fatalf("got %v, want ErrNoSlot", err)
	}
	s.wantRun(before)
	if events := s.events(before.Ref()); len(events) != before.EventCount {
		s.Fatalf("got events %+v after the refused commit", events)
	}
}

// fill creates n runs that each hold a slot of the pool.
func (s *storeTest) fill(pool string, n, limit int) []run.Run {
	s.Helper()
	held := make([]run.Run, n)
	for i := range held {
		held[i] = s.apply(s.create(sample("acme", fmt.Sprintf("%s-holder-%d", pool, i))), admitted(pool, limit))
	}
	return held
}

// queue creates n queued runs. Their order in the queue is the order of their IDs.
func (s *storeTest) queue(pool string, n, limit int) []run.Run {
	s.Helper()
	queue := make([]run.Run, n)
	for i := range queue {
		queue[i] = s.apply(s.create(sample("acme", fmt.Sprintf("%s-waiter-%d", pool, i))), enqueued(pool, limit))
	}
	return queue
}

func fullPool(s *storeTest) {
	held := s.fill("p", 2, 2)
	s.wantPools(acme("p", 2, 0))
	late := s.create(sample("acme", "late"))
	s.wantNoSlot(late, s.decide(late, admitted("p", 2)))
	s.wantPools(acme("p", 2, 0))
	// A run holds its slot until its machine is gone.
	running := s.apply(held[0], startFacts("m")...)
	success := successFacts()
	running = s.apply(running, success[0])
	s.wantNoSlot(late, s.decide(late, admitted("p", 2)))
	s.apply(running, success[1])
	s.wantPools(acme("p", 1, 0))
	s.wantRun(s.apply(late, admitted("p", 2)))
	s.wantPools(acme("p", 2, 0))
}

func queueIsNotOvertaken(s *storeTest) {
	held := s.fill("p", 1, 1)
	first := s.queue("p", 1, 1)[0]
	s.apply(s.apply(held[0], startFacts("m")...), successFacts()...)
	s.wantPools(acme("p", 0, 1))
	late := s.create(sample("acme", "late"))
	s.wantNoSlot(late, s.decide(late, admitted("p", 1)))
	s.wantQueue("p", first)
	s.wantHolders("p")
	s.apply(first, granted(1))
	s.wantPools(acme("p", 1, 0))
}

func queueInOrder(s *storeTest) {
	s.fill("p", 1, 1)
	at := s.now
	var want []run.Run
	// The order of the queue is by Slot.Since and then by ID, not by commit.
	for _, place := range []struct {
		id    string
		after time.Duration
	}{{"b", 4}, {"d", 1}, {"c", 1}, {"e", 3}, {"a", 1e9}} {
		r := sample("acme", place.id)
		w := port.WriteOf(run.New(r, at.Add(place.after)))
		_, err := s.store.Create(s.ctx, w, nil)
		s.ok(err)
		want = append(want, s.apply(after(w), enqueued("p", 1)))
	}
	slices.SortFunc(want, func(a, b run.Run) int {
		if c := a.Slot.Since.Compare(b.Slot.Since); c != 0 {
			return c
		}
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	s.same([]string{"c", "d", "e", "b", "a"}, idsOf(want))
	s.wantQueue("p", want...)
	s.wantPools(acme("p", 1, 5))
	for limit := range 7 {
		queue, err := s.store.Queue(s.ctx, "acme", "p", limit)
		s.ok(err)
		s.same(idsOf(want[:min(limit, 5)]), idsOfRefs(queue))
	}
	// Commits of queued runs do not change the order.
	want[3] = s.apply(want[3], run.TokenStored{Step: run.StepQueued, Generation: 1, Token: "t"})
	s.wantQueue("p", want...)
}

func slotPassesOn(s *storeTest) {
	for _, name := range []string{"release first", "grant first"} {
		holder, queue := s.fill(name, 1, 1)[0], s.queue(name, 3, 1)
		s.wantNoSlot(queue[0], s.decide(queue[0], granted(1)))
		for len(queue) > 0 {
			holder = s.apply(holder, cancel())
			release, grant := s.decide(holder, run.Settled{}), s.decide(queue[0], granted(1))
			if name == "release first" {
				s.ok(s.store.Commit(s.ctx, release, grant))
			} else {
				s.ok(s.store.Commit(s.ctx, grant, release))
			}
			s.wantRun(after(release))
			s.wantRun(after(grant))
			holder, queue = after(grant), queue[1:]
			s.wantQueue(name, queue...)
			s.wantPools(acme(name, 1, len(queue)))
		}
		s.apply(holder, cancel(), run.Settled{})
		s.wantPools()
	}
}

func releasesCountFirst(s *storeTest) {
	held, queue := s.fill("p", 2, 2), s.queue("p", 3, 2)
	for i := range held {
		held[i] = s.apply(held[i], cancel())
	}
	grants := []port.Write{
		s.decide(queue[0], granted(2)), s.decide(queue[1], granted(2)), s.decide(queue[2], granted(2)),
	}
	releases := []port.Write{s.decide(held[0], run.Settled{}), s.decide(held[1], run.Settled{})}
	s.wantNoSlot(queue[0], append(slices.Clone(grants), releases...)...)
	s.wantNoSlot(queue[1], grants[0], grants[1], releases[0])
	s.wantPools(acme("p", 2, 3))
	s.wantQueue("p", queue...)
	s.ok(s.store.Commit(s.ctx, grants[0], releases[0], grants[1], releases[1]))
	s.wantPools(acme("p", 2, 1))
	s.wantQueue("p", queue[2])
}

func leavingTheQueue(s *storeTest) {
	s.fill("p", 1, 1)
	queue := s.queue("p", 4, 1)
	s.apply(queue[1], cancel())
	s.wantQueue("p", queue[0], queue[2], queue[3])
	s.now = s.now.Add(2 * time.Hour)
	s.apply(queue[0], run.Evaluated{})
	s.wantQueue("p", queue[2], queue[3])
	s.wantPools(acme("p", 1, 2))
}

func retryReleasesSlot(s *storeTest) {
	r := s.apply(s.fill("p", 1, 1)[0], startFacts("m")...)
	r = s.apply(r, lostFacts()...)
	if r.State != run.Retrying {
		s.Fatalf("got state %s after the lost attempt", r.State)
	}
	s.wantPools()
	s.fill("p2", 1, 1)
	s.now = s.now.Add(time.Hour)
	r = s.apply(r, run.Due{}, enqueued("p2", 1))
	s.wantQueue("p2", r)
	s.wantPools(acme("p2", 1, 1))
	other := s.queue("p2", 1, 1)[0]
	s.wantQueue("p2", r, other)
}

func unlimitedPool(s *storeTest) {
	for i := range 20 {
		r := s.apply(s.create(sample("acme", fmt.Sprint(i))), admitted("p", 0))
		if i%2 == 0 {
			s.apply(s.apply(r, startFacts("m")...), successFacts()...)
		}
	}
	s.wantPools()
	// When the pool gets a limit, earlier runs have no lease.
	s.fill("p", 1, 1)
	s.wantPools(acme("p", 1, 0))
}

func limitOfTheCommit(s *storeTest) {
	s.fill("p", 2, 2)
	late := s.create(sample("acme", "late"))
	s.wantNoSlot(late, s.decide(late, admitted("p", 1)))
	s.wantNoSlot(late, s.decide(late, admitted("p", 2)))
	s.apply(late, admitted("p", 3))
	s.wantPools(acme("p", 3, 0))
	// The limit in the grant applies, not the limit at the time of the enqueueing.
	queue := s.queue("p", 3, 3)
	s.wantNoSlot(queue[0], s.decide(queue[0], granted(2)))
	s.wantNoSlot(queue[0], s.decide(queue[0], granted(3)))
	s.apply(queue[0], granted(4))
	s.wantPools(acme("p", 4, 2))
	s.apply(queue[1], granted(0))
	s.wantPools(acme("p", 4, 1))
	s.wantQueue("p", queue[2])
}

// loweredLimit lowers the limit and then grants released slots. No more runs must hold slots
// than the new limit permits.
func loweredLimit(s *storeTest) {
	holders, queue := s.fill("p", 4, 4), s.queue("p", 4, 4)
	for i, holder := range holders {
		holder = s.apply(holder, cancel())
		release, grant := s.decide(holder, run.Settled{}), s.decide(queue[0], granted(2))
		err := s.store.Commit(s.ctx, release, grant)
		if held := 3 - i; held >= 2 { // besides the granted slot
			if !errors.Is(err, port.ErrNoSlot) {
				s.Fatalf("%d slots held beside: got %v, want ErrNoSlot", held, err)
			}
			s.ok(s.store.Commit(s.ctx, release))
			s.wantPools(acme("p", held, len(queue)))
			continue
		}
		s.ok(err)
		queue = queue[1:]
		s.wantPools(acme("p", 2, len(queue)))
	}
}

// restoredLimit raises the limit, grants a slot, and lowers the limit again. A released slot
// must not be granted while another run holds all slots of the lower limit.
func restoredLimit(s *storeTest) {
	first, queue := s.fill("p", 1, 1)[0], s.queue("p", 3, 1)
	second := s.apply(queue[0], granted(2))
	s.wantPools(acme("p", 2, 2))
	release := s.decide(s.apply(first, cancel()), run.Settled{})
	if err := s.store.Commit(s.ctx, release, s.decide(queue[1], granted(1))); !errors.Is(err, port.ErrNoSlot) {
		s.Fatalf("a slot is held beside: got %v, want ErrNoSlot", err)
	}
	s.ok(s.store.Commit(s.ctx, release))
	s.wantPools(acme("p", 1, 2))
	s.wantNoSlot(queue[1], s.decide(queue[1], granted(1)))
	s.ok(s.store.Commit(s.ctx, s.decide(s.apply(second, cancel()), run.Settled{}), s.decide(queue[1], granted(1))))
	s.wantPools(acme("p", 1, 1))
}

func poolsAreIsolated(s *storeTest) {
	s.fill("p", 1, 1)
	s.fill("q", 1, 1)
	waits := s.queue("q", 1, 1)[0]
	other := s.apply(s.create(sample("zenith", "p-holder-0")), admitted("p", 1))
	s.wantQueue("p")
	s.wantQueue("q", waits)
	if queue, err := s.store.Queue(s.ctx, "zenith", "q", 10); err != nil || len(queue) != 0 {
		s.Fatalf("queue of another tenant: got %v, %v", queue, err)
	}
	zenith := port.PoolUse{Tenant: "zenith", Pool: "p", Held: 1}
	s.wantPools(acme("p", 1, 0), acme("q", 1, 1), zenith)
	s.apply(s.apply(other, cancel()), run.Settled{})
	s.wantPools(acme("p", 1, 0), acme("q", 1, 1))
}

// reconcileFollowsRecords makes leases differ from records in the only way that the port
// allows, by commits without their lease change.
func reconcileFollowsRecords(s *storeTest) {
	held, queue := s.fill("p", 2, 3), s.queue("p", 3, 3)
	other := s.fill("q", 1, 1)
	silently := func(r run.Run, f run.Fact) run.Run {
		w := s.decide(r, f)
		w.Lease = ""
		s.ok(s.store.Commit(s.ctx, w))
		return after(w)
	}
	silently(queue[1], cancel())                                            // is queued, but has ended
	silently(s.apply(held[0], cancel()), run.Settled{})                     // has a lease, but has ended
	silently(queue[0], granted(3))                                          // is queued, but holds a slot in its record
	silently(s.create(sample("acme", "unseen")), admitted("p", 3))          // has no lease, but holds a slot in its record
	waits := silently(s.create(sample("acme", "behind")), enqueued("p", 3)) // is not queued, but waits in its record
	_, err := s.store.Reconcile(s.ctx, "acme", "p")                         // a store that derives its leases from the records changes no row
	s.ok(err)
	s.wantPools(acme("p", 3, 2), acme("q", 1, 0))
	s.wantQueue("p", queue[2], waits)
	for _, pool := range []string{"p", "q", "unknown"} {
		if changed, err := s.store.Reconcile(s.ctx, "acme", pool); err != nil || changed != 0 {
			s.Fatalf("consistent pool: got %d rows changed, %v; want 0", changed, err)
		}
	}
	s.wantPools(acme("p", 3, 2), acme("q", 1, 0))
	s.wantNoSlot(queue[2], s.decide(queue[2], granted(3)))
	s.apply(s.apply(other[0], cancel()), run.Settled{})
	s.wantPools(acme("p", 3, 2))
}
