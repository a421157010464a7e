package orchestrator

import (
	"context"
	"errors"
	"time"

	"github.com/sortie-dev/sortie/shared/run"
)

// claimed is a new task for which its dispatcher has a slot of a replica before the task is
// stored. One commit then stores the task, takes the slot of its pool, and notes the
// dispatcher as its worker.
type claimed struct {
	*serving
	of    *Dispatcher
	limit int
	// ctx is that of the serving.
	ctx context.Context //nolint:containedctx // of the goroutine that serves the task after its commit
}

// claim takes a replica for a new task that could begin at once, or returns nil: the task is
// then stored, admitted and begun by a commit each. It waits for nothing, because the caller
// waits for the answer that the task is accepted.
func (s *Dispatcher) claim(ctx context.Context, r run.Run) *claimed {
	if s == nil || r.Work.Inference == nil || r.Concurrency != nil {
		return nil
	}
	lookup := func(ctx context.Context) (run.Pool, error) { return s.servedPool(ctx, r) }
	pool, err := lookup(ctx)
	// Without a limit, runs with throttled starts may be queued, which the task must not overtake.
	if err != nil || pool.Engine == nil || pool.Draining || pool.Limit == 0 || pool.Engine.Model != r.Work.Inference.Model {
		return nil
	}
	c := &claimed{serving: newServing(r), of: s, limit: pool.Limit}
	if c.replica = s.replicas.tryTake(r, pool); c.replica == nil {
		return nil
	}
	if !stillServes(ctx, c.replica.replica, lookup) || !s.beginClaimed(c) {
		c.replica.release()
		return nil
	}
	return c
}

// beginClaimed is begin for a task that is not stored yet. A shift takes no such task: its
// process accepts none.
func (s *Dispatcher) beginClaimed(c *claimed) bool {
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

// cancel gives the claim up.
func (c *claimed) cancel() {
	if c == nil {
		return
	}
	c.stop(nil)
	c.of.end(c.serving)
	c.replica.release()
}

// creation decides the creation of the task with its slot and its worker.
func (c *claimed) creation(ctx context.Context, r run.Run, now time.Time) (run.Decision, error) {
	pool := run.Pool{Tenant: r.Tenant, ID: r.Slot.Pool, Limit: c.limit}
	p, err := c.of.estimates.admitted(ctx, r, pool)
	return run.NewWith(r, now,
		run.Admitted{Pool: pool.ID, Limit: pool.Limit, Prediction: c.of.predicted(ctx, r, p, err)},
		run.WorkerContacted{Attempt: c.attempt, WorkerID: c.of.cfg.ID, Replica: c.replica.id, Started: true})
}

// start serves the task, which is stored as r.
func (c *claimed) start(r run.Run) {
	c.run = r
	started := c.of.start(func(ctx context.Context) {
		again, err := c.serve()
		if err == nil && again {
			err = c.of.Conduct(ctx, c.ref)
		}
		c.of.warnConduct(ctx, c.ref, err)
	})
	if !started { // the process stops: the next one finds the task as after a crash
		c.cancel()
	}
}

func (c *claimed) serve() (again bool, err error) {
	defer c.cancel()
	again, err = c.of.serveContacted(c.ctx, c.serving)
	if err != nil && errors.Is(context.Cause(c.ctx), errCancelled) {
		return true, nil
	}
	return again, err
}
