package porttest

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// contest is a pool that many runs want a slot of.
type contest struct {
	*storeTest
	limit   int
	holding atomic.Int64
	// granted has a channel for each run, closed by whoever granted it a slot.
	granted map[string]chan struct{}
	failed  chan error
}

// poolRace has a hundred runs go through a pool of three at once. Each takes a
// slot or stands in line; who is done hands its slot to the first in line.
func poolRace(s *storeTest) {
	const runs = 100
	c := &contest{storeTest: s, limit: 3, granted: map[string]chan struct{}{}, failed: make(chan error, runs)}
	refs := make([]run.Ref, runs)
	for i := range refs {
		refs[i] = s.create(sample("acme", fmt.Sprintf("run-%02d", i))).Ref()
		c.granted[refs[i].ID] = make(chan struct{})
	}
	for _, ref := range refs {
		go func() { c.failed <- c.live(ref) }()
	}
	for range runs {
		if err := <-c.failed; err != nil {
			s.Fatal(err)
		}
	}
	s.wantPools()
	for _, ref := range refs {
		r, err := s.store.Load(s.ctx, ref)
		s.ok(err)
		if r.State != run.Cancelled || len(s.events(ref)) != r.EventCount {
			s.Fatalf("run %s ended as %s with %d events of %d", ref.ID, r.State, len(s.events(ref)), r.EventCount)
		}
	}
}

// live is the life of one run.
func (c *contest) live(ref run.Ref) error {
	err := c.commit(ref, run.Admitted{Pool: "p", Limit: c.limit})
	if errors.Is(err, port.ErrNoSlot) {
		if err = c.commit(ref, run.Enqueued{Pool: "p", Limit: c.limit}); err != nil {
			return err
		}
		// The slot may have become free just before the run stood in line.
		if err = c.grantAll(); err != nil {
			return err
		}
		select {
		case <-c.granted[ref.ID]:
		case <-c.ctx.Done():
			return fmt.Errorf("run %s was never granted a slot: %w", ref.ID, c.ctx.Err())
		}
	}
	if err != nil {
		return err
	}
	if now := c.holding.Add(1); now > int64(c.limit) {
		return fmt.Errorf("%d runs hold a slot of %d", now, c.limit)
	}
	pools, err := c.store.Pools(c.ctx)
	if err != nil {
		return err
	}
	for _, p := range pools {
		if p.Held > c.limit {
			return fmt.Errorf("the pool tells %d held slots of %d", p.Held, c.limit)
		}
	}
	if err := c.commit(ref, cancel()); err != nil {
		return err
	}
	c.holding.Add(-1)
	return c.handOn(ref)
}

// commit applies a fact to a run that nobody else changes now.
func (c *contest) commit(ref run.Ref, f run.Fact) error {
	r, err := c.store.Load(c.ctx, ref)
	if err != nil {
		return err
	}
	d, err := run.Decide(r, f, c.now)
	if err != nil {
		return err
	}
	if !d.Changed {
		return fmt.Errorf("%T changes nothing about run %s in %s", f, ref.ID, r.State)
	}
	return c.store.Commit(c.ctx, port.WriteOf(d))
}

// handOn gives the run's slot back, and to the first in line in the same
// commit.
func (c *contest) handOn(ref run.Ref) error {
	r, err := c.store.Load(c.ctx, ref)
	if err != nil {
		return err
	}
	release, err := run.Decide(r, run.Settled{}, c.now)
	if err != nil {
		return err
	}
	for {
		grant, next, err := c.first()
		if err != nil {
			return err
		}
		err = c.store.Commit(c.ctx, append(grant, port.WriteOf(release))...)
		if conflict, ok := errors.AsType[*port.Conflict](err); ok && conflict.Ref == next {
			continue
		}
		if err != nil {
			return err
		}
		if len(grant) > 0 {
			close(c.granted[next.ID])
			return nil
		}
		return c.grantAll()
	}
}

// grantAll grants free slots while somebody waits.
func (c *contest) grantAll() error {
	for {
		grant, next, err := c.first()
		if err != nil || len(grant) == 0 {
			return err
		}
		err = c.store.Commit(c.ctx, grant...)
		switch {
		case err == nil:
			close(c.granted[next.ID])
		case errors.Is(err, port.ErrNoSlot):
			return nil
		case !errors.Is(err, port.ErrConflict):
			return err
		}
	}
}

// first is the grant to the first in line.
func (c *contest) first() ([]port.Write, run.Ref, error) {
	for {
		line, err := c.store.Queue(c.ctx, "acme", "p", 1)
		if err != nil || len(line) == 0 {
			return nil, run.Ref{}, err
		}
		r, err := c.store.Load(c.ctx, line[0])
		if err != nil {
			return nil, run.Ref{}, err
		}
		d, err := run.Decide(r, granted(c.limit), c.now)
		if err != nil {
			return nil, run.Ref{}, err
		}
		if d.Lease == run.LeaseGrant {
			return []port.Write{port.WriteOf(d)}, r.Ref(), nil
		}
	}
}
