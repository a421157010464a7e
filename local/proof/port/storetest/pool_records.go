package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// samplePool returns a valid new pool.
func (s *storeTest) samplePool(tenant, id string) platform.Pool {
	return platform.Pool{Tenant: tenant, ID: id}.Resized(4, 100, "token:abc123", s.later())
}

// savePool stores the pool and returns the stored record.
func (s *storeTest) savePool(p platform.Pool) platform.Pool {
	s.Helper()
	s.ok(s.store.SavePool(s.ctx, p))
	p.Version++
	return p
}

// wantPool checks that the store returns exactly this record.
func (s *storeTest) wantPool(want platform.Pool) {
	s.Helper()
	got, err := s.store.LoadPool(s.ctx, want.Ref())
	s.ok(err)
	s.same(want, got)
}

func (s *storeTest) wantNoPool(tenant, id string) {
	s.Helper()
	if got, err := s.store.LoadPool(s.ctx, platform.PoolRef{Tenant: tenant, ID: id}); !isNotFound(err) {
		s.Fatalf("pool %s of %q: got %+v, %v; want ErrNotFound", id, tenant, got, err)
	}
}

func poolIsReadBack(s *storeTest) {
	s.wantNoPool("acme", "reports")
	p := s.savePool(s.samplePool("acme", "reports"))
	s.wantPool(p)
	s.wantNoPool("zenith", "reports")
	s.wantNoPool("acme", "report")
	s.wantJobConflict(s.store.SavePool(s.ctx, s.samplePool("acme", "reports")))
	for i, change := range []func(platform.Pool) platform.Pool{
		func(p platform.Pool) platform.Pool { return p.Resized(0, 0, "token:def456", s.later()) },
		func(p platform.Pool) platform.Pool { return p.Drain(s.now.Add(time.Hour), "token:def456", s.later()) },
		func(p platform.Pool) platform.Pool { return p.Drain(time.Time{}, "token:abc123", s.later()) },
		func(p platform.Pool) platform.Pool { return p.Resume("token:abc123", s.later()) },
	} {
		stale := p
		p = s.savePool(change(p))
		s.wantPool(p)
		if p.Version != int64(i)+2 {
			s.Fatalf("change %d: got version %d, want %d", i, p.Version, i+2)
		}
		s.wantJobConflict(s.store.SavePool(s.ctx, stale))
	}
	ahead := p
	ahead.Version++
	s.wantJobConflict(s.store.SavePool(s.ctx, ahead))
	unknown := s.samplePool("acme", "unknown")
	unknown.Version = 1
	s.wantJobConflict(s.store.SavePool(s.ctx, unknown))
	s.wantNoPool("acme", "unknown")
	s.wantPool(p)
}

// poolRecordRace changes one pool concurrently. One of the calls must win.
func poolRecordRace(s *storeTest) {
	for version := range 3 {
		p := s.samplePool("acme", "reports")
		if version > 0 {
			var err error
			p, err = s.store.LoadPool(s.ctx, p.Ref())
			s.ok(err)
		}
		const callers = 8
		results := make(chan error, callers)
		for i := range callers {
			go func() { results <- s.store.SavePool(s.ctx, p.Resized(100+callers*version+i, 0, "token:abc123", s.now)) }()
		}
		won := 0
		for range callers {
			if err := <-results; err == nil {
				won++
			} else {
				s.wantJobConflict(err)
			}
		}
		if won != 1 {
			s.Fatalf("got %d successful changes, want 1", won)
		}
	}
}

func deletedPoolIsGone(s *storeTest) {
	first := s.savePool(s.samplePool("acme", "reports"))
	changed := s.savePool(first.Drain(s.now, "token:abc123", s.later()))
	s.wantJobConflict(s.store.DeletePool(s.ctx, first))
	s.wantPool(changed)
	s.ok(s.store.DeletePool(s.ctx, changed))
	s.wantNoPool("acme", "reports")
	s.wantJobConflict(s.store.DeletePool(s.ctx, changed))
	s.wantJobConflict(s.store.SavePool(s.ctx, changed))
	s.wantNoPool("acme", "reports")
	// A commit that is based on the deleted pool conflicts with the new pool, even though the
	// ID and version are the same.
	again := s.savePool(s.samplePool("acme", "reports"))
	s.wantJobConflict(s.store.SavePool(s.ctx, first))
	s.wantJobConflict(s.store.DeletePool(s.ctx, first))
	s.wantPool(again)
}

func poolsInPages(s *storeTest) {
	var want []string
	for i := range 23 {
		id := fmt.Sprintf("pool-%02d", (i*7)%23)
		s.savePool(s.samplePool("acme", id))
		s.save(s.sampleJob("acme", fmt.Sprint("job-", i)))
		want = append(want, id)
	}
	slices.Sort(want)
	s.savePool(s.samplePool("zenith", "pool-00b"))
	gone := s.savePool(s.samplePool("acme", "pool-00b"))
	s.ok(s.store.DeletePool(s.ctx, gone))
	s.wantIDsInPages(want, func(tenant string, page port.Page) (ids []string, next string, err error) {
		pools, next, err := s.store.PoolRecords(s.ctx, tenant, page)
		for _, p := range pools {
			s.wantPool(p)
			ids = append(ids, p.ID)
		}
		return ids, next, err
	})
}

func drainsAreDue(s *storeTest) {
	start := s.now
	var want []string
	for i := range 9 {
		p := s.samplePool([]string{"acme", "zenith"}[i%2], fmt.Sprint("pool-", 9-i))
		s.savePool(p.Drain(start.Add(time.Duration(i)*time.Minute), "token:abc123", s.later()))
		want = append(want, p.ID)
	}
	s.savePool(s.samplePool("acme", "open"))
	s.savePool(s.samplePool("acme", "no-deadline").Drain(time.Time{}, "token:abc123", s.later()))
	due := duePages(s, s.store.PoolsDue, func(ref platform.PoolRef) string { return ref.ID })
	s.wantDue(want, start, due)
	for i, change := range []func(platform.Pool) platform.Pool{
		func(p platform.Pool) platform.Pool { p.Drained = true; return p },
		func(p platform.Pool) platform.Pool { return p.Resume("token:abc123", s.later()) },
	} {
		p, err := s.store.LoadPool(s.ctx, platform.PoolRef{Tenant: []string{"acme", "zenith"}[i], ID: want[i]})
		s.ok(err)
		s.savePool(change(p))
		s.same(want[i+1:], due(start.Add(time.Hour), 10))
	}
	third, err := s.store.LoadPool(s.ctx, platform.PoolRef{Tenant: "acme", ID: want[2]})
	s.ok(err)
	s.ok(s.store.DeletePool(s.ctx, third))
	s.same(want[3:], due(start.Add(time.Hour), 10))
}

// poolRecordLeavesLeases changes and deletes the record of a pool that has leases and a queue,
// which must not change.
func poolRecordLeavesLeases(s *storeTest) {
	p := s.savePool(s.samplePool("acme", "pool"))
	s.apply(s.create(sample("acme", "one")), run.Admitted{Pool: "pool", Limit: 1})
	s.apply(s.create(sample("acme", "two")), run.Enqueued{Pool: "pool", Limit: 1})
	want := []port.PoolUse{{Tenant: "acme", Pool: "pool", Held: 1, Queued: 1}}
	check := func() {
		s.Helper()
		if changed, err := s.store.Reconcile(s.ctx, "acme", "pool"); err != nil || changed != 0 {
			s.Fatalf("got %d reconciled rows, %v, want 0", changed, err)
		}
		got, err := s.store.Pools(s.ctx)
		s.ok(err)
		s.same(want, got)
	}
	check()
	p = s.savePool(p.Resized(2, 5, "token:abc123", s.later()))
	check()
	s.ok(s.store.DeletePool(s.ctx, p))
	check()
}
