package inferences

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// preparedTask is a new task whose dispatcher has acquired a slot of a replica before the task
// is stored. One commit then stores the task, acquires the slot of its pool, and records the
// dispatcher as its worker.
type preparedTask struct {
	*serving
	of    *Dispatcher
	limit int
	// ctx is the context of the attempt.
	ctx context.Context //nolint:containedctx // of the goroutine that serves the task after its commit
}

// TryTake acquires a replica for a new task that can begin at once. Otherwise it returns nil,
// and the task is stored, admitted and begun in separate commits. It does not wait for a
// replica, because the client waits until the task is accepted.
func (s *Dispatcher) TryTake(ctx context.Context, r run.Run) PreparedTask {
	if r.Work.Inference == nil || r.Concurrency != nil {
		return nil
	}
	lookup := func(ctx context.Context) (platform.Pool, error) { return s.servedPool(ctx, r) }
	pool, err := s.capacity.Pools.ForAdmission(ctx, r.Tenant, r.Slot.Pool)
	if err == nil {
		pool, err = s.capacity.Replicas.Served(ctx, pool)
	}
	// Without a limit, runs with throttled starts may be queued, which the task must not overtake.
	if err != nil || pool.Engine == nil || pool.Draining || pool.Limit == 0 || pool.Engine.Model != r.Work.Inference.ServedModel() {
		return nil
	}
	c := &preparedTask{serving: newServing(r), of: s, limit: pool.Limit}
	if c.replica = s.replicas.TryTake(r, pool); c.replica == nil {
		return nil
	}
	if !c.replica.StillServed(ctx, lookup) || !s.beginTaken(c) {
		c.replica.Release()
		return nil
	}
	return c
}

// beginTaken registers a task that is not stored yet. It returns false if Run is not running,
// while it serves one pool, because its process then accepts no tasks, and if the task is registered already.
func (s *attempts) beginTaken(c *preparedTask) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil || s.ctx.Err() != nil || s.poolServer != nil || s.active[c.run.TaskID] != nil {
		return false
	}
	c.attempt = 1
	c.ctx, c.stop = context.WithCancelCause(s.ctx)
	s.active[c.run.TaskID] = c.serving
	return true
}

// GiveUp stops serving the task and releases the replica.
func (c *preparedTask) GiveUp() {
	c.stop(nil)
	c.of.unregister(c.serving)
	c.replica.Release()
}

// Creation returns the decision that creates the task with its slot and its worker.
func (c *preparedTask) Creation(ctx context.Context, r run.Run, now time.Time) (run.Decision, error) {
	pool := platform.Pool{Tenant: r.Tenant, ID: r.Slot.Pool, Limit: c.limit}
	p, err := c.of.capacity.Estimates.Admitted(ctx, r, pool)
	if err != nil {
		c.of.warn(ctx, r, "cannot predict the start of the run", err)
		p = nil
	}
	return run.NewWith(r, now,
		run.Admitted{Pool: pool.ID, Limit: pool.Limit, Prediction: p},
		run.WorkerContacted{Attempt: c.attempt, WorkerID: c.of.cfg.ID, Replica: c.replica.ID(), Started: true})
}

// Start serves the task in a goroutine of the dispatcher. r is the stored run.
func (c *preparedTask) Start(r run.Run) {
	c.run = r
	started := c.of.start(func(ctx context.Context) {
		again, err := c.serve()
		if err == nil && again {
			err = c.of.Advance(ctx, c.ref)
		}
		c.of.retryAdvance(ctx, c.ref, err)
	})
	if !started { // the process stops: the next one continues the task as after a crash
		c.GiveUp()
	}
}

func (c *preparedTask) serve() (again bool, err error) {
	defer c.GiveUp()
	return ignoreInterrupt(c.ctx, func() (bool, error) { return c.of.serveContacted(c.ctx, c.serving) })
}
