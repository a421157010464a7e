package orchestrator

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/run"
)

// taken is a new task for which its dispatcher has taken a slot of a replica before the task is
// stored. One commit then stores the task, takes the slot of its pool, and notes the
// dispatcher as its worker.
type taken struct {
	*serving
	of    *Dispatcher
	limit int
	// ctx is that of the serving.
	ctx context.Context //nolint:containedctx // of the goroutine that serves the task after its commit
}

// tryTake takes a replica for a new task that could begin at once, or returns nil: the task is
// then stored, admitted and begun by a commit each. It waits for nothing, because the caller
// waits for the answer that the task is accepted.
func (s *Dispatcher) tryTake(ctx context.Context, r run.Run) *taken {
	if s == nil || r.Work.Inference == nil || r.Concurrency != nil {
		return nil
	}
	lookup := func(ctx context.Context) (run.Pool, error) { return s.servedPool(ctx, r) }
	pool, err := lookup(ctx)
	// Without a limit, runs with throttled starts may be queued, which the task must not overtake.
	if err != nil || pool.Engine == nil || pool.Draining || pool.Limit == 0 || pool.Engine.Model != r.Work.Inference.Model {
		return nil
	}
	c := &taken{serving: newServing(r), of: s, limit: pool.Limit}
	if c.replica = s.replicas.tryTake(r, pool); c.replica == nil {
		return nil
	}
	if !stillServes(ctx, c.replica.replica, lookup) || !s.beginTaken(c) {
		c.replica.release()
		return nil
	}
	return c
}

// beginTaken is begin for a task that is not stored yet. A shift takes no such task: its
// process accepts none.
func (s *Dispatcher) beginTaken(c *taken) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil || s.ctx.Err() != nil || s.shift != nil || s.active[c.run.TaskID] != nil {
		return false
	}
	c.attempt = 1
	c.ctx, c.stop = context.WithCancelCause(s.ctx)
	s.active[c.run.TaskID] = c.serving
	return true
}

// giveUp releases the replica.
func (c *taken) giveUp() {
	if c == nil {
		return
	}
	c.stop(nil)
	c.of.end(c.serving)
	c.replica.release()
}

// creation decides the creation of the task with its slot and its worker.
func (c *taken) creation(ctx context.Context, r run.Run, now time.Time) (run.Decision, error) {
	pool := run.Pool{Tenant: r.Tenant, ID: r.Slot.Pool, Limit: c.limit}
	p, err := c.of.estimates.admitted(ctx, r, pool)
	return run.NewWith(r, now,
		run.Admitted{Pool: pool.ID, Limit: pool.Limit, Prediction: c.of.predicted(ctx, r, p, err)},
		run.WorkerContacted{Attempt: c.attempt, WorkerID: c.of.cfg.ID, Replica: c.replica.id, Started: true})
}

// start serves the task, which is stored as r.
func (c *taken) start(r run.Run) {
	c.run = r
	started := c.of.start(func(ctx context.Context) {
		again, err := c.serve()
		if err == nil && again {
			err = c.of.Conduct(ctx, c.ref)
		}
		c.of.repeatConduct(ctx, c.ref, err)
	})
	if !started { // the process stops: the next one finds the task as after a crash
		c.giveUp()
	}
}

func (c *taken) serve() (again bool, err error) {
	defer c.giveUp()
	return unlessInterrupted(c.ctx, func() (bool, error) { return c.of.serveContacted(c.ctx, c.serving) })
}
