package storetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

var shop = platform.KeyPool("shop")

// ofKey creates a run with the concurrency key "shop" and its slot limit.
func (s *storeTest) ofKey(id string, limit int) run.Run {
	s.Helper()
	r := sample("acme", id)
	r.Concurrency = &spec.Concurrency{Key: "shop", Limit: limit}
	return s.create(r)
}

// joining returns the write that creates a run in the queue of the concurrency key "shop".
func (s *storeTest) joining(id string, most int) port.Write {
	r := sample("acme", id)
	r.Concurrency = &spec.Concurrency{Key: "shop", Limit: 1, QueueLimit: most}
	now := s.later()
	return port.WriteOf(run.New(r.Joined(run.AdmitKeyQueue, now), now))
}

func keySlotsAreLimited(s *storeTest) {
	first := s.apply(s.ofKey("a", 1), admitted("p", 3))
	s.wantPools(acme(shop, 1, 0), acme("p", 1, 0))
	second := s.ofKey("b", 1)
	s.wantNoSlotOf(shop, second, s.decide(second, admitted("p", 3)))
	s.wantNoSlotOf(shop, second, s.decide(second, enqueued("p", 3)))
	second = s.apply(second, run.KeyEnqueued{})
	third := s.apply(s.ofKey("c", 1), run.KeyEnqueued{})
	s.wantPools(acme(shop, 1, 2), acme("p", 1, 0))
	s.wantQueue(shop, second, third)
	s.wantHolders(shop, first)
	// One commit ends a run, grants its key slot to another run, and enqueues that run in the
	// pool.
	first = s.apply(first, cancel())
	ends, joins := s.decide(first, run.Settled{}), s.decide(second, run.KeyGranted{Pool: "p", Limit: 3})
	s.wantNoSlotOf(shop, second, joins)
	s.ok(s.store.Commit(s.ctx, joins, ends))
	second = after(joins)
	s.wantRun(second)
	s.wantPools(acme(shop, 1, 1), acme("p", 0, 1))
	second = s.apply(second, granted(3))
	s.wantPools(acme(shop, 1, 1), acme("p", 1, 0))
	s.apply(s.apply(second, cancel()), run.Settled{})
	s.wantPools(acme(shop, 0, 1))
	third = s.apply(third, run.KeyGranted{Pool: "p", Limit: 3, Queue: s.line(third)})
	s.apply(third, cancel())
	s.wantPools()
	// A retry keeps the key slot but not the pool slot.
	fourth := s.apply(s.apply(s.apply(s.ofKey("d", 1), admitted("p", 3)), startFacts("m")...), lostFacts()...)
	s.wantPools(acme(shop, 1, 0))
	s.apply(fourth, cancel())
	s.wantPools()
}

// keySlotRace starts many runs with the same key concurrently.
func keySlotRace(s *storeTest) {
	const runs, limit = 12, 3
	var writes []port.Write
	for i := range runs {
		writes = append(writes, s.decide(s.ofKey(fmt.Sprint("run-", i), limit), admitted("p", 100)))
	}
	won := s.race(runs, func(i int) error { return s.store.Commit(s.ctx, writes[i]) }, isNoSlot)
	if won != limit {
		s.Fatalf("got %d slots taken, want %d", won, limit)
	}
	s.wantPools(acme(shop, limit, 0), acme("p", limit, 0))
}

func keyQueueIsLimited(s *storeTest) {
	s.apply(s.ofKey("holder", 1), admitted("p", 3))
	create := func(w port.Write, with ...port.Write) error {
		_, err := s.store.Create(s.ctx, w, nil, with...)
		return err
	}
	a, b, c := s.joining("a", 2), s.joining("b", 2), s.joining("c", 2)
	s.ok(create(a))
	s.ok(create(b))
	if missing, ok := errors.AsType[*port.NoSlot](create(c)); !ok || missing.Pool != shop {
		s.Fatalf("got %v, want a *NoSlot of %s", missing, shop)
	}
	s.wantNone(c.Run.Ref())
	s.wantQueue(shop, a.Run, b.Run)
	s.apply(after(a), cancel())
	s.ok(create(c))
	s.wantQueue(shop, b.Run, c.Run)
	s.ok(create(s.joining("d", 3)))
	s.wantPools(acme(shop, 1, 3), acme("p", 1, 0))
}

// keyQueueRace concurrently creates many runs in the queue of a key.
func keyQueueRace(s *storeTest) {
	const runs, most = 12, 4
	var writes []port.Write
	for i := range runs {
		writes = append(writes, s.joining(fmt.Sprint("run-", i), most))
	}
	won := s.race(runs, func(i int) error {
		_, err := s.store.Create(s.ctx, writes[i], nil)
		return err
	}, isNoSlot)
	if won != most {
		s.Fatalf("got %d runs queued, want %d", won, most)
	}
	s.wantPools(acme(shop, 0, most))
}

// creationReplaces creates a run and, in the same commit, skips the first queued run of its
// key.
func creationReplaces(s *storeTest) {
	var old []run.Run
	for _, id := range []string{"a", "b"} {
		w := s.joining(id, 2)
		_, err := s.store.Create(s.ctx, w, nil)
		s.ok(err)
		old = append(old, after(w))
	}
	// If the skipped run conflicts, no run is created.
	stale := s.decide(old[0], run.KeyOverflowed{By: "new", Queued: 2})
	old[0] = s.apply(old[0], run.TokenStored{Step: run.StepQueued, Generation: 1, Token: "t"})
	w := s.joining("new", 2)
	_, err := s.store.Create(s.ctx, w, nil, stale)
	s.wantConflict(err, old[0].Ref())
	s.wantNone(w.Run.Ref())
	s.wantQueue(shop, old...)
	skips := s.decide(old[0], run.KeyOverflowed{By: "new", Queued: 2})
	key := port.IdempotencyKey{Key: "k", Digest: "d"}
	existing, err := s.store.Create(s.ctx, w, &key, skips)
	s.ok(err)
	if existing != nil {
		s.Fatalf("got the existing run %s, want none", existing.ID)
	}
	s.wantRun(after(skips))
	s.wantRun(after(w))
	s.wantQueue(shop, old[1], w.Run)
	// A repeated request skips no other run.
	again := s.joining("again", 2)
	existing, err = s.store.Create(s.ctx, again, &key, s.decide(old[1], run.KeyOverflowed{By: "again", Queued: 2}))
	s.ok(err)
	if existing == nil || existing.ID != "new" {
		s.Fatalf("got %+v, want the run of the first use", existing)
	}
	s.wantRun(old[1])
	s.wantQueue(shop, old[1], w.Run)
}

// reconcileFollowsKeySlots is reconcileFollowsRecords for key slots.
func reconcileFollowsKeySlots(s *storeTest) {
	silently := func(w port.Write) run.Run {
		w.KeyLease = ""
		return s.commit(w)
	}
	held := s.apply(s.ofKey("held", 3), admitted("p", 9))
	released := s.apply(s.ofKey("released", 3), enqueued("p", 9))
	queued := s.apply(s.ofKey("queued", 3), run.KeyEnqueued{})
	silently(s.decide(released, cancel())) // has a lease, but has ended
	silently(s.decide(queued, cancel()))   // is queued, but has ended
	unseenRun := s.ofKey("unseen", 3)
	unseen := silently(s.decide(unseenRun, run.Enqueued{Pool: "p", Limit: 9, Queue: s.line(unseenRun)})) // has no lease, but holds a slot in its record
	behind := silently(s.decide(s.ofKey("behind", 3), run.KeyEnqueued{}))                                // is not queued, but waits in its record
	_, err := s.store.Reconcile(s.ctx, "acme", shop)
	s.ok(err)
	s.wantPools(acme(shop, 2, 1), acme("p", 1, 1))
	s.wantQueue(shop, behind)
	s.wantHolders(shop, held, unseen)
	for _, pool := range []string{shop, "p"} {
		if changed, err := s.store.Reconcile(s.ctx, "acme", pool); err != nil || changed != 0 {
			s.Fatalf("consistent pool %s: got %d rows changed, %v; want 0", pool, changed, err)
		}
	}
	s.apply(unseen, cancel())
	s.apply(behind, cancel())
	s.wantPools(acme(shop, 1, 0), acme("p", 1, 0))
}

// inPool creates a run with a key and a priority and enqueues it in pool p.
func (s *storeTest) inPool(id, key string, p spec.Priority) run.Run {
	s.Helper()
	r := sample("acme", id)
	r.Priority = p
	if key != "" {
		r.Concurrency = &spec.Concurrency{Key: key, Limit: 1000}
	}
	return s.join(s.create(r))
}

// join enqueues the run in pool p.
func (s *storeTest) join(r run.Run) run.Run {
	s.Helper()
	return s.apply(r, run.Enqueued{Pool: "p", Limit: 1, Queue: s.line(r)})
}

func (s *storeTest) line(r run.Run) platform.QueueState {
	s.Helper()
	l, err := s.store.QueueState(s.ctx, r.Tenant, r.SlotOf("p", 1))
	s.ok(err)
	return l
}

// queueByPriority enqueues runs in an order that differs from the order of the queue.
func queueByPriority(s *storeTest) {
	var want []run.Run
	for _, row := range []struct {
		id, key  string
		priority spec.Priority
		place    int
	}{
		{"h", "a", spec.PriorityBatch, 7},
		{"c", "a", spec.PriorityNormal, 2},
		{"f", "a", spec.PriorityNormal, 5}, // the second turn of its key
		{"d", "b", "", 3},
		{"a", "a", spec.PriorityInteractive, 0},
		{"g", "a", "", 6}, // the third turn of its key
		{"b", "", spec.PriorityInteractive, 1},
		{"e", "c", spec.PriorityNormal, 4},
		{"i", "", spec.PriorityBatch, 8},
	} {
		want = append(want, s.inPool(row.id, row.key, row.priority))
	}
	slices.SortFunc(want, func(a, b run.Run) int { return int(a.ID[0]) - int(b.ID[0]) })
	s.wantQueue("p", want...)
	for most := range want {
		queue, err := s.store.Queue(s.ctx, "acme", "p", most)
		s.ok(err)
		s.same(idsOf(want[:most]), idsOfRefs(queue))
	}
	// A run whose start was throttled returns to its place in the queue.
	started := s.apply(want[0], granted(1))
	s.wantQueue("p", want[1:]...)
	want[0] = s.apply(started, run.StartDeferred{Attempt: 1})
	s.wantQueue("p", want...)
}

func lineFollowsTheQueue(s *storeTest) {
	one := s.create(sample("acme", "one"))
	s.same(platform.QueueState{}, s.line(one))
	x := s.inPool("x1", "x", "")
	s.same(platform.QueueState{Head: 1, Tail: 1, Last: 1, Queued: 1}, s.line(x))
	s.inPool("x2", "x", "")
	third := s.inPool("x3", "x", "")
	y := s.inPool("y1", "y", "")
	s.same(platform.QueueState{Head: 1, Tail: 3, Last: 3, Queued: 3}, s.line(x))
	s.same(platform.QueueState{Head: 1, Tail: 3, Last: 1, Queued: 1}, s.line(y))
	s.same(platform.QueueState{Head: 1, Tail: 3}, s.line(one))
	urgent := sample("acme", "urgent")
	urgent.Priority = spec.PriorityInteractive
	s.same(platform.QueueState{}, s.line(urgent))
	// A grant and an end do not change the round of the last join.
	x = s.apply(x, granted(1))
	s.same(platform.QueueState{Head: 1, Tail: 3, Last: 3, Queued: 2}, s.line(x))
	s.apply(third, cancel())
	s.same(platform.QueueState{Head: 1, Tail: 2, Last: 3, Queued: 1}, s.line(x))
	x = s.apply(x, run.StartDeferred{Attempt: 1})
	s.same(platform.QueueState{Head: 1, Tail: 2, Last: 3, Queued: 2}, s.line(x))
	s.apply(y, cancel())
	if changed, err := s.store.Reconcile(s.ctx, "acme", "p"); err != nil || changed != 0 {
		s.Fatalf("consistent pool: got %d rows changed, %v; want 0", changed, err)
	}
	s.same(platform.QueueState{Head: 1, Tail: 2, Last: 3, Queued: 2}, s.line(x))
}

// joinsOfAKey has two runs of a key join with the same line. The later commit must conflict.
func joinsOfAKey(s *storeTest) {
	for _, round := range []string{"first", "second"} {
		keyed := func(id string) run.Run {
			r := sample("acme", round+id)
			r.JobID = "nightly"
			return s.create(r)
		}
		a, b := keyed("a"), keyed("b")
		same := s.line(a)
		joins, late := s.decide(a, run.Enqueued{Pool: "p", Limit: 1, Queue: same}), s.decide(b, run.Enqueued{Pool: "p", Limit: 1, Queue: same})
		s.ok(s.store.Commit(s.ctx, joins))
		s.wantConflict(s.store.Commit(s.ctx, late), b.Ref())
		s.wantRun(b)
		b = s.join(b)
		if got, want := b.Slot.Round, joins.Run.Slot.Round+1; got != want {
			s.Fatalf("got round %d, want %d", got, want)
		}
	}
	s.same(platform.QueueState{Head: 1, Tail: 4, Last: 4, Queued: 4}, s.line(run.Run{Tenant: "acme", JobID: "nightly"}))
}

// startsRefusedWithoutALimit queues runs of a pool without a limit because the platform
// rejected their starts. Other runs of their key join the queue before and after them.
func startsRefusedWithoutALimit(s *storeTest) {
	refused := func(id string) run.Run {
		r := sample("acme", id)
		r.JobID = "nightly"
		started := s.apply(s.create(r), run.Admitted{Pool: "p"})
		return s.apply(started, run.StartDeferred{Attempt: 1})
	}
	joins := func(id string) run.Run {
		r := sample("acme", id)
		r.JobID = "nightly"
		return s.join(s.create(r))
	}
	a, b := refused("a"), refused("b")
	s.same(2, s.line(a).Queued)
	c := joins("c")
	d, e := refused("d"), joins("e")
	s.wantQueue("p", a, b, d, c, e)
	s.same(5, s.line(a).Queued)
	for _, r := range []run.Run{a, b, c, d} {
		s.apply(r, cancel())
	}
	s.same(1, s.line(e).Queued)
	s.wantQueue("p", e)
}

// turnsOfKeys serves keys with queues of different lengths. One key joins and one leaves
// meanwhile.
func turnsOfKeys(s *storeTest) {
	lengths := map[string]int{"a": 9, "b": 4, "c": 6, "late": 3}
	queued := map[string]run.Run{}
	join := func(key string) {
		for i := range lengths[key] {
			r := s.inPool(fmt.Sprint(key, i), key, "")
			queued[r.ID] = r
		}
	}
	join("a")
	join("b")
	join("c")
	served := map[string]int{}
	waiting := map[string]int{"a": 9, "b": 4, "c": 6}
	for len(queued) > 0 {
		head, err := s.store.Queue(s.ctx, "acme", "p", 1)
		s.ok(err)
		r := queued[head[0].ID]
		r = s.apply(r, granted(1))
		delete(queued, r.ID)
		s.apply(s.apply(r, cancel()), run.Settled{})
		key := r.Concurrency.Key
		served[key]++
		waiting[key]--
		least, most := 1<<30, 0
		for key, left := range waiting {
			if left > 0 {
				least, most = min(least, served[key]), max(most, served[key])
			}
		}
		if most > least+1 {
			s.Fatalf("got starts %v with %v queued, want a difference of at most 1", served, waiting)
		}
		if r.ID == "a1" { // in the second round
			join("late")
			served["late"], waiting["late"] = 1, 3
		}
	}
}
