package storetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// throttled is the fact that the platform throttled the start of an admitted run.
func throttled() run.Fact {
	return run.StartRefused{Attempt: 1, Fault: fault.New(fault.Throttled, "too many")}
}

func limiterIsStored(s *storeTest) {
	read := func() fleet.StartLimiter {
		s.Helper()
		g, err := s.store.StartLimiter(s.ctx, "p")
		s.ok(err)
		return g
	}
	s.same(fleet.StartLimiter{Pool: "p"}, read())
	first, _ := read().Throttled([]fleet.StartPace{{App: "a", Interval: time.Second}, {App: "b", Interval: time.Minute}}, "a", time.Time{}, s.later())
	s.ok(s.store.SetStartLimiter(s.ctx, first))
	want := first
	want.Version = 1
	s.same(want, read())
	// A change must be based on the stored version.
	for _, version := range []int64{0, 2} {
		other := first
		other.Version = version
		if err := s.store.SetStartLimiter(s.ctx, other); !errors.Is(err, port.ErrConflict) {
			s.Errorf("got %v for version %d, want ErrConflict", err, version)
		}
	}
	next, _ := read().Throttled(first.Apps, "b", time.Time{}, s.later())
	s.ok(s.store.SetStartLimiter(s.ctx, next))
	next.Version = 2
	s.same(next, read())
	if other, err := s.store.StartLimiter(s.ctx, "q"); err != nil || other.Version != 0 {
		s.Errorf("got limiter %+v (%v) of another pool, want none", other, err)
	}
}

func limiterAndGrantAreAtomic(s *storeTest) {
	held := s.fill("p", 1, 1)[0]
	first := s.queue("p", 1, 1)[0]
	limiter, _ := fleet.StartLimiter{Pool: "p"}.Throttled([]fleet.StartPace{{App: "a", Interval: time.Second}}, "a", time.Time{}, s.now)
	s.ok(s.store.SetStartLimiter(s.ctx, limiter))
	limiter.Version = 1
	fact, after, ok := limiter.Grant(first, 1, s.now)
	if !ok || after == nil {
		s.Fatalf("got permit %t, want one", ok)
	}
	grant := s.decide(first, fact)
	grant.Limiter = after
	s.wantNoSlot(first, grant)
	if got, err := s.store.StartLimiter(s.ctx, "p"); err != nil || got.Version != 1 {
		s.Fatalf("got limiter %+v (%v) after the refused grant, want version 1", got, err)
	}
	s.apply(held, run.CancelRequested{By: "x"}, run.Settled{})
	stale := grant
	stale.Limiter = new(*after)
	stale.Limiter.Version = 5
	err := s.store.Commit(s.ctx, stale)
	if conflict, ok := errors.AsType[*port.Conflict](err); !ok || conflict.Ref != (run.Ref{}) {
		s.Fatalf("got %v for a changed limiter, want a conflict without a run", err)
	}
	s.wantRun(first)
	s.ok(s.store.Commit(s.ctx, grant))
	want := *after
	want.Version = 2
	got, err := s.store.StartLimiter(s.ctx, "p")
	s.ok(err)
	s.same(want, got)
	s.wantPools(acme("p", 1, 0))
}

func throttledStartIsQueued(s *storeTest) {
	held := s.fill("p", 2, 2)
	waits := s.queue("p", 1, 2)[0]
	back := s.apply(held[0], throttled())
	s.wantPools(acme("p", 1, 2))
	s.wantQueue("p", back, waits) // it got its slot first
	s.wantRun(s.apply(back, granted(2)))
	s.wantPools(acme("p", 2, 1))
	again := s.apply(held[1], throttled())
	if changed, err := s.store.Reconcile(s.ctx, "acme", "p"); err != nil || changed != 0 {
		s.Errorf("got %d changes (%v) by Reconcile, want none", changed, err)
	}
	s.apply(again, run.CancelRequested{By: "x"})
	s.wantQueue("p", waits)
	s.wantPools(acme("p", 1, 1))
}

func unlimitedPoolHasAQueue(s *storeTest) {
	first := s.apply(s.create(sample("acme", "first")), admitted("p", 0))
	s.wantPools()
	first = s.apply(first, throttled())
	second := s.apply(s.create(sample("acme", "second")), enqueued("p", 0))
	s.wantQueue("p", first, second)
	s.wantPools(acme("p", 0, 2))
	if changed, err := s.store.Reconcile(s.ctx, "acme", "p"); err != nil || changed != 0 {
		s.Errorf("got %d changes (%v) by Reconcile, want none", changed, err)
	}
	s.apply(first, granted(0))
	s.wantQueue("p", second)
	s.apply(second, granted(0))
	s.wantPools()
}

// tokenRace starts twenty runs of a pool concurrently. The pool has two apps, each with a burst
// of two. Each token must be taken once, in the commit of the run that it starts. A start that
// loses a token changes nothing. A start loses at most one commit for each token, and does not
// try again when all are taken.
func tokenRace(s *storeTest) {
	const starts, burst = 20, 2
	apps := []fleet.StartPace{{App: "a", Interval: time.Hour, Burst: burst}, {App: "b", Interval: time.Hour, Burst: burst}}
	runs := make([]run.Run, starts)
	for i := range runs {
		runs[i] = s.apply(s.create(sample("acme", fmt.Sprint("run-", i))), admitted("p", 0))
	}
	var mu sync.Mutex
	conflicts, taken := 0, map[string]int{}
	won := s.race(starts, func(i int) error {
		for {
			limiter, err := s.store.StartLimiter(s.ctx, "p")
			if err != nil {
				return err
			}
			app, after, _, ok := limiter.Take(apps, s.now)
			if !ok {
				return errNoToken
			}
			d, err := run.Decide(runs[i], run.StartPermitted{Attempt: 1, App: app}, s.now)
			if err != nil {
				return err
			}
			w := port.WriteOf(d)
			w.Limiter = &after
			err = s.store.Commit(s.ctx, w)
			mu.Lock()
			switch {
			case err == nil:
				taken[app]++
			case errors.Is(err, port.ErrConflict):
				conflicts++
			}
			mu.Unlock()
			if !errors.Is(err, port.ErrConflict) {
				return err
			}
		}
	}, func(err error) bool { return errors.Is(err, errNoToken) })
	s.same(map[string]int{"a": burst, "b": burst}, taken)
	if won != 2*burst || conflicts > (starts-1)*2*burst {
		s.Errorf("got %d starts with %d conflicts, want %d with at most %d", won, conflicts, 2*burst, (starts-1)*2*burst)
	}
	committed := map[string]int{}
	for _, r := range runs {
		now, err := s.store.Load(s.ctx, r.Ref())
		s.ok(err)
		if now.Version > r.Version {
			committed[now.Attempt.App]++
		}
	}
	s.same(taken, committed)
	limiter, err := s.store.StartLimiter(s.ctx, "p")
	s.ok(err)
	if _, _, _, ok := limiter.Take(apps, s.now); ok || limiter.Version != 2*burst {
		s.Errorf("got version %d and a further token %t, want %d and none", limiter.Version, ok, 2*burst)
	}
}

var errNoToken = errors.New("no token")
