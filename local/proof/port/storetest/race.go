package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// contest is a test of a pool with more runs than slots.
type contest struct {
	*storeTest
	limit   int
	holding atomic.Int64
	// granted has a channel for each run. The goroutine that grants the run a slot closes it.
	granted map[string]chan struct{}
	failed  chan error
}

// poolRace executes a hundred runs concurrently in a pool of three slots. Each run takes a slot
// or joins the queue. A run that ends passes its slot to the head of the queue.
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
			s.Fatalf("run %s: got state %s with %d events, want %d", ref.ID, r.State, len(s.events(ref)), r.EventCount)
		}
	}
}

// live executes one run from its admission to its end.
func (c *contest) live(ref run.Ref) error {
	err := c.commit(ref, run.Admitted{Pool: "p", Limit: c.limit})
	if errors.Is(err, port.ErrNoSlot) {
		if err = c.commit(ref, run.Enqueued{Pool: "p", Limit: c.limit}); err != nil {
			return err
		}
		// A slot may have been released just before the run joined the queue.
		if err = c.grantAll(); err != nil {
			return err
		}
		select {
		case <-c.granted[ref.ID]:
		case <-c.ctx.Done():
			return fmt.Errorf("run %s was not granted a slot: %w", ref.ID, c.ctx.Err())
		}
	}
	if err != nil {
		return err
	}
	if now := c.holding.Add(1); now > int64(c.limit) {
		return fmt.Errorf("got %d runs with a slot, want at most %d", now, c.limit)
	}
	pools, err := c.store.Pools(c.ctx)
	if err != nil {
		return err
	}
	for _, p := range pools {
		if p.Held > c.limit {
			return fmt.Errorf("got a pool with %d held slots, want at most %d", p.Held, c.limit)
		}
	}
	if err := c.commit(ref, cancel()); err != nil {
		return err
	}
	c.holding.Add(-1)
	return c.passOn(ref)
}

// commit applies a fact to a run that no other goroutine changes.
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

// passOn releases the slot of the run and, in the same commit, grants it to the head of the
// queue.
func (c *contest) passOn(ref run.Ref) error {
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

// grantAll grants free slots until the queue is empty or the pool is full.
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

// first returns the write that grants a slot to the head of the queue, and the run.
func (c *contest) first() ([]port.Write, run.Ref, error) {
	for {
		queue, err := c.store.Queue(c.ctx, "acme", "p", 1)
		if err != nil || len(queue) == 0 {
			return nil, run.Ref{}, err
		}
		r, err := c.store.Load(c.ctx, queue[0])
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
