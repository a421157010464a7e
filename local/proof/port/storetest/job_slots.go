package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

var nightly = platform.JobPool("nightly")

// jobSlot returns a write that changes only the job slot of the run.
func (s *storeTest) jobSlot(r run.Run, change run.LeaseChange, limit int) port.Write {
	return s.withJobSlot(port.Write{Run: r}, change, limit)
}

// withJobSlot adds a change of the run's job slot to the write.
func (s *storeTest) withJobSlot(w port.Write, change run.LeaseChange, limit int) port.Write {
	slot := platform.Slot{Pool: platform.JobPool(w.Run.JobID), Limit: limit, Since: s.later()}
	switch change {
	case run.LeaseTake, run.LeaseGrant:
		slot.State = platform.SlotHeld
	case run.LeaseEnqueue, run.LeaseRequeue:
		slot.State = platform.SlotQueued
	default:
		slot.Since = time.Time{}
	}
	w.Run.JobSlot, w.JobLease = slot, change
	return w
}

// commit commits the write and returns the stored record.
func (s *storeTest) commit(w port.Write) run.Run {
	s.Helper()
	s.ok(s.store.Commit(s.ctx, w))
	s.wantRun(after(w))
	return after(w)
}

// wantNoSlotOf checks that the commit fails because the pool has no free slot, and that it has
// no effect.
func (s *storeTest) wantNoSlotOf(pool string, before run.Run, writes ...port.Write) {
	s.Helper()
	s.wantNoSlot(before, writes...)
	if missing, ok := errors.AsType[*port.NoSlot](s.store.Commit(s.ctx, writes...)); !ok || missing.Pool != pool {
		s.Fatalf("got %+v, want a *NoSlot of %s", missing, pool)
	}
}

func jobSlotsAreLimited(s *storeTest) {
	first := s.commit(s.jobSlot(s.ofJob("acme", "nightly", "a"), run.LeaseTake, 1))
	s.wantPools(acme(nightly, 1, 0))
	second := s.ofJob("acme", "nightly", "b")
	s.wantNoSlotOf(nightly, second, s.jobSlot(second, run.LeaseTake, 1))
	second = s.commit(s.jobSlot(second, run.LeaseEnqueue, 1))
	third := s.commit(s.jobSlot(s.ofJob("acme", "nightly", "c"), run.LeaseEnqueue, 1))
	s.wantQueue(nightly, second, third)
	s.wantHolders(nightly, first)
	s.wantPools(acme(nightly, 1, 2))
	s.wantNoSlotOf(nightly, second, s.jobSlot(second, run.LeaseGrant, 1))
	// Other jobs and tenants have their own slots.
	other := s.commit(s.jobSlot(s.ofJob("acme", "night", "d"), run.LeaseTake, 1))
	foreign := s.commit(s.jobSlot(s.ofJob("zenith", "nightly", "e"), run.LeaseTake, 1))
	// A free slot is reserved for the queue.
	first = s.commit(s.jobSlot(first, run.LeaseRelease, 1))
	late := s.ofJob("acme", "nightly", "f")
	s.wantNoSlotOf(nightly, late, s.jobSlot(late, run.LeaseTake, 1))
	second = s.commit(s.jobSlot(second, run.LeaseGrant, 1))
	third = s.commit(s.jobSlot(third, run.LeaseDequeue, 1))
	// A run that ends releases its slot or its place in the queue.
	second = s.commit(s.jobSlot(second, run.LeaseRequeue, 1))
	s.wantQueue(nightly, second)
	s.commit(s.withJobSlot(s.decide(second, cancel()), run.LeaseDequeue, 1))
	s.commit(s.withJobSlot(s.decide(other, cancel()), run.LeaseRelease, 1))
	s.commit(s.withJobSlot(s.decide(foreign, cancel()), run.LeaseRelease, 1))
	s.wantPools()
	// Without a limit there are no slots.
	s.commit(s.jobSlot(first, "", 0))
	s.wantPools()
	s.commit(s.jobSlot(third, run.LeaseTake, 1))
	s.wantPools(acme(nightly, 1, 0))
}

// bothSlots changes the pool slots and job slots of several runs in one commit.
func bothSlots(s *storeTest) {
	both := func(id string) run.Run {
		return s.commit(s.withJobSlot(s.decide(s.ofJob("acme", "nightly", id), admitted("p", 2)), run.LeaseTake, 1))
	}
	a := both("a")
	s.wantPools(acme(nightly, 1, 0), acme("p", 1, 0))
	b := s.ofJob("acme", "nightly", "b")
	s.wantNoSlotOf(nightly, b, s.withJobSlot(s.decide(b, admitted("p", 2)), run.LeaseTake, 1))
	s.wantPools(acme(nightly, 1, 0), acme("p", 1, 0))
	b = s.commit(s.withJobSlot(s.decide(b, admitted("p", 2)), run.LeaseEnqueue, 1))
	s.wantPools(acme(nightly, 1, 1), acme("p", 2, 0))
	c := s.apply(s.create(sample("acme", "c")), enqueued("p", 2))
	s.wantNoSlotOf("p", c, s.decide(c, granted(2)))
	d := s.ofJob("acme", "night", "d")
	s.wantNoSlotOf("p", d, s.withJobSlot(s.decide(d, admitted("p", 2)), run.LeaseTake, 1))
	// The job slot of a passes to b, and its pool slot to c.
	a = s.commit(s.decide(a, cancel()))
	ends := s.withJobSlot(s.decide(a, run.Settled{}), run.LeaseRelease, 1)
	grantsJob, grantsPool := s.jobSlot(b, run.LeaseGrant, 1), s.decide(c, granted(2))
	s.wantNoSlotOf(nightly, b, grantsJob, grantsPool)
	s.ok(s.store.Commit(s.ctx, grantsPool, ends, grantsJob))
	for _, w := range []port.Write{grantsPool, ends, grantsJob} {
		s.wantRun(after(w))
	}
	s.wantPools(acme(nightly, 1, 0), acme("p", 2, 0))
	s.wantQueue(nightly)
	s.wantQueue("p")
	// Each slot is released by its own number.
	b, c = after(grantsJob), after(grantsPool)
	c = s.apply(c, cancel())
	s.apply(c, run.Settled{})
	s.wantPools(acme(nightly, 1, 0), acme("p", 1, 0))
	b = s.commit(s.decide(b, cancel()))
	s.commit(s.withJobSlot(s.decide(b, run.Settled{}), run.LeaseRelease, 1))
	s.wantPools()
}

// cancelledRunGetsNoJobSlot cancels the head of the queue between the read of the queue and the
// grant.
func cancelledRunGetsNoJobSlot(s *storeTest) {
	holder := s.commit(s.jobSlot(s.ofJob("acme", "nightly", "a"), run.LeaseTake, 1))
	head := s.commit(s.jobSlot(s.ofJob("acme", "nightly", "b"), run.LeaseEnqueue, 1))
	grant, release := s.jobSlot(head, run.LeaseGrant, 1), s.jobSlot(holder, run.LeaseRelease, 1)
	gone := s.commit(s.withJobSlot(s.decide(head, cancel()), run.LeaseDequeue, 1))
	err := s.store.Commit(s.ctx, release, grant)
	if conflict, ok := asConflict(err); !ok || conflict.Ref != head.Ref() {
		s.Fatalf("got %v, want a *Conflict of the cancelled run", err)
	}
	s.wantRun(holder)
	s.wantRun(gone)
	s.wantPools(acme(nightly, 1, 0))
}

// jobSlotRace starts many runs of one job concurrently.
func jobSlotRace(s *storeTest) {
	const runs, limit = 12, 3
	got := make(chan error, runs)
	for i := range runs {
		w := s.withJobSlot(s.decide(s.ofJob("acme", "nightly", fmt.Sprint("run-", i)), admitted("p", 100)), run.LeaseTake, limit)
		go func() { got <- s.store.Commit(s.ctx, w) }()
	}
	taken := 0
	for range runs {
		err := <-got
		if missing, ok := errors.AsType[*port.NoSlot](err); ok && missing.Pool == nightly {
			continue
		}
		s.ok(err)
		taken++
	}
	if taken != limit {
		s.Fatalf("got %d slots taken, want %d", taken, limit)
	}
	s.wantPools(acme(nightly, limit, 0), acme("p", limit, 0))
}

// reconcileFollowsJobSlots is reconcileFollowsRecords for job slots.
func reconcileFollowsJobSlots(s *storeTest) {
	silently := func(w port.Write) run.Run {
		w.JobLease = ""
		return s.commit(w)
	}
	run1 := func(id string) run.Run { return s.ofJob("acme", "nightly", id) }
	held := s.commit(s.jobSlot(s.apply(run1("held"), admitted("p", 5)), run.LeaseTake, 3))
	released := s.commit(s.jobSlot(s.apply(run1("released"), admitted("p", 5)), run.LeaseTake, 3))
	queued := s.commit(s.jobSlot(run1("queued"), run.LeaseEnqueue, 3))
	silently(s.jobSlot(released, run.LeaseRelease, 3))                       // has a lease, but no slot in its record
	silently(s.withJobSlot(s.decide(queued, cancel()), run.LeaseDequeue, 3)) // is queued, but has ended
	unseen := silently(s.jobSlot(run1("unseen"), run.LeaseTake, 3))          // has no lease, but holds a slot in its record
	behind := silently(s.jobSlot(run1("behind"), run.LeaseEnqueue, 3))       // is not queued, but waits in its record
	_, err := s.store.Reconcile(s.ctx, "acme", nightly)
	s.ok(err)
	s.wantPools(acme(nightly, 2, 1), acme("p", 2, 0))
	s.wantQueue(nightly, behind)
	for _, pool := range []string{nightly, "p"} {
		if changed, err := s.store.Reconcile(s.ctx, "acme", pool); err != nil || changed != 0 {
			s.Fatalf("consistent pool %s: got %d rows changed, %v; want 0", pool, changed, err)
		}
	}
	// The corrected slots are released by their numbers.
	s.commit(s.jobSlot(unseen, run.LeaseRelease, 3))
	s.wantPools(acme(nightly, 1, 1), acme("p", 2, 0))
	s.commit(s.jobSlot(held, run.LeaseRelease, 3))
	s.wantPools(acme(nightly, 0, 1), acme("p", 2, 0))
}
