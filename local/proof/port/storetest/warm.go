package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

func (s *storeTest) warm(tenant, pool, id string) platform.WarmMachine {
	return platform.WarmMachine{
		Tenant: tenant, Pool: pool, ID: id, Phase: platform.WarmReady, CreatedAt: s.later(),
		Key:     platform.WarmKey{Image: "worker", CPUs: 1, MemoryMB: 256, Region: "ams"},
		Machine: platform.Machine{Runner: "fly", App: "app", ID: "m-" + id},
	}
}

// saveWarm stores the machine and returns the stored record.
func (s *storeTest) saveWarm(w platform.WarmMachine) platform.WarmMachine {
	s.Helper()
	s.ok(s.store.SaveWarm(s.ctx, w))
	w.Version++
	return w
}

func (s *storeTest) wantWarm(tenant, pool string, want ...platform.WarmMachine) {
	s.Helper()
	got, err := s.store.WarmMachines(s.ctx, platform.PoolRef{Tenant: tenant, ID: pool})
	s.ok(err)
	slices.SortFunc(got, func(a, b platform.WarmMachine) int { return strings.Compare(a.ID, b.ID) })
	if len(got) != len(want) {
		s.Fatalf("got warm machines %+v, want %+v", got, want)
	}
	for i := range want {
		s.same(want[i], got[i])
	}
}

func warmIsReadBack(s *storeTest) {
	s.wantWarm("acme", "p")
	a := s.saveWarm(s.warm("acme", "p", "a"))
	b := s.saveWarm(s.warm("acme", "p", "b"))
	other := s.saveWarm(s.warm("zenith", "p", "a"))
	s.saveWarm(s.warm("acme", "q", "a"))
	s.wantWarm("acme", "p", a, b)
	s.wantWarm("zenith", "p", other)
	for _, version := range []int64{0, 2} {
		stale := a
		stale.Version, stale.App = version, "other"
		if err := s.store.SaveWarm(s.ctx, stale); !errors.Is(err, port.ErrConflict) {
			s.Errorf("got %v for version %d, want ErrConflict", err, version)
		}
		if err := s.store.DeleteWarm(s.ctx, stale); !errors.Is(err, port.ErrConflict) {
			s.Errorf("got %v for the deletion of version %d, want ErrConflict", err, version)
		}
	}
	a = a.ClaimedBy("r", 0)
	a = s.saveWarm(a)
	a = s.saveWarm(a.Clearing("v2"))
	s.wantWarm("acme", "p", a, b)
	a = s.saveWarm(a.Cleared(platform.Machine{Runner: "fly", App: "app", ID: "m-a", Version: "v3"}))
	s.wantWarm("acme", "p", a, b)
	a.Phase = platform.WarmEnding
	a = s.saveWarm(a)
	s.wantWarm("acme", "p", a, b)
	s.ok(s.store.DeleteWarm(s.ctx, a))
	s.wantWarm("acme", "p", b)
	s.ok(s.store.DeleteWarm(s.ctx, a))
	if err := s.store.SaveWarm(s.ctx, a); !errors.Is(err, port.ErrConflict) {
		s.Errorf("got %v for a deleted machine, want ErrConflict", err)
	}
	// All of many machines are returned.
	for i := range 120 {
		s.ok(s.store.SaveWarm(s.ctx, s.warm("acme", "many", fmt.Sprintf("%03d", i))))
	}
	if got, err := s.store.WarmMachines(s.ctx, platform.PoolRef{Tenant: "acme", ID: "many"}); err != nil || len(got) != 120 {
		s.Errorf("got %d machines (%v), want 120", len(got), err)
	}
}

// warmPoolsAreDue checks that a pool with warm machines is always due.
func warmPoolsAreDue(s *storeTest) {
	p := s.samplePool("acme", "warm")
	p.CreatedAt, p.Warm = s.now.Add(-time.Hour), &platform.Warm{Min: 1, Max: 2, Ahead: time.Minute, After: platform.WarmRecycle}
	p = s.savePool(p)
	s.savePool(s.samplePool("acme", "cold"))
	s.wantPool(p)
	due, _, err := s.store.PoolsDue(s.ctx, s.now, "", 10)
	s.ok(err)
	s.same([]platform.PoolRef{p.Ref()}, due)
	p.Warm = nil
	s.savePool(p)
	if due, _, err := s.store.PoolsDue(s.ctx, s.now, "", 10); err != nil || len(due) > 0 {
		s.Errorf("got due pools %v (%v), want none without warm machines", due, err)
	}
}

// claimRace has twenty attempts claim three machines concurrently. Each machine must have one
// claim, and the run of the claim must have the machine.
func claimRace(s *storeTest) {
	const attempts = 20
	machines := []platform.WarmMachine{
		s.saveWarm(s.warm("acme", "p", "a")), s.saveWarm(s.warm("acme", "p", "b")), s.saveWarm(s.warm("acme", "p", "c")),
	}
	runs := make([]run.Run, attempts)
	for i := range runs {
		runs[i] = s.apply(s.create(sample("acme", fmt.Sprint("run-", i))), admitted("p", 0))
	}
	now := s.later()
	won := s.race(attempts, func(i int) error {
		w := machines[i%len(machines)]
		d, err := run.Decide(runs[i], run.MachineClaimed{Attempt: 1, Warm: w, Recycle: true}, now)
		if err != nil || !d.Changed {
			return fmt.Errorf("got no claim: %w", err)
		}
		is, claimed := port.WriteOf(d), w.ClaimedBy(runs[i].ID, runs[i].Attempt.Number)
		is.Warm = &claimed
		return s.store.Commit(s.ctx, is)
	}, func(err error) bool {
		conflict, ok := errors.AsType[*port.Conflict](err)
		return ok && conflict.Ref == (run.Ref{})
	})
	if won != len(machines) {
		s.Errorf("got %d claims, want %d", won, len(machines))
	}
	holders := map[string]string{}
	for _, r := range runs {
		now, err := s.store.Load(s.ctx, r.Ref())
		s.ok(err)
		if now.Attempt.Warm != nil {
			holders[now.Attempt.Warm.ID] = now.ID
		} else {
			s.wantRun(r)
		}
	}
	stored, err := s.store.WarmMachines(s.ctx, platform.PoolRef{Tenant: "acme", ID: "p"})
	s.ok(err)
	for _, w := range stored {
		if w.Phase != platform.WarmClaimed || w.Run == "" || holders[w.ID] != w.Run || w.Version != 2 {
			s.Errorf("got machine %+v, want it claimed by run %q", w, holders[w.ID])
		}
	}
}

// claimSeen reads the machines while they are claimed one after the other. A reader that sees a
// claimed machine must find the claim in the run, because both are of the same commit.
func claimSeen(s *storeTest) {
	const claims, readers = 40, 2
	pool := platform.PoolRef{Tenant: "acme", ID: "p"}
	done := make(chan struct{})
	var reading sync.WaitGroup
	for range readers {
		reading.Go(func() {
			for seen := map[string]bool{}; ; {
				select {
				case <-done:
					return
				default:
				}
				stored, err := s.store.WarmMachines(s.ctx, pool)
				if err != nil {
					s.Errorf("cannot read the machines: %v", err)
					return
				}
				for _, w := range stored {
					if w.Phase != platform.WarmClaimed || seen[w.ID] {
						continue
					}
					seen[w.ID] = true
					if r, err := s.store.Load(s.ctx, run.Ref{Tenant: "acme", ID: w.Run}); err != nil || !r.Claims(w) {
						s.Errorf("got machine %s claimed by run %s, and version %d of the run (%v), want one with the claim", w.ID, w.Run, r.Version, err)
					}
				}
			}
		})
	}
	for i := range claims {
		w := s.saveWarm(s.warm("acme", "p", fmt.Sprint("m", i)))
		r := s.apply(s.create(sample("acme", fmt.Sprint("run-", i))), admitted("p", 0))
		d, err := run.Decide(r, run.MachineClaimed{Attempt: 1, Warm: w}, s.now)
		s.ok(err)
		is, claimed := port.WriteOf(d), w.ClaimedBy(r.ID, r.Attempt.Number)
		is.Warm = &claimed
		s.ok(s.store.Commit(s.ctx, is))
	}
	close(done)
	reading.Wait()
}
