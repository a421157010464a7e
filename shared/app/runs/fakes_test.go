package runs_test

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// store is the SQLite store with hooks before commits and an outage.
type store struct {
	port.Store
	// commits are the runs of each commit, in order.
	commits [][]run.Ref
	// before runs once before the next commit of several runs, beforeTimeout before
	// the next commit of a heartbeat timeout.
	before, beforeTimeout func()
	// full is a pool that has no slot for the next commit of several runs.
	full string
	// down fails every write, noHeartbeats those of heartbeats and canaries.
	// reconciled lists the reconciled pools.
	down, noHeartbeats bool
	// crash wraps each commit of runs and each write of a pool; nil does nothing.
	crash func(commit func() error) error
	// resources is the error of every write of resources. around wraps those writes and the
	// creations of runs; nil does nothing.
	resources  error
	around     func(write func() error) error
	reconciled []string
	// afterWarm runs once after the next read of warm machines.
	afterWarm func()
}

// WriteResources implements port.ResourceStore.
func (s *store) WriteResources(ctx context.Context, save, remove []port.Resource, notes ...port.Note) error {
	if s.resources != nil {
		return s.resources
	}
	write := func() error { return s.Store.WriteResources(ctx, save, remove, notes...) }
	if s.around != nil {
		return s.around(write)
	}
	return write()
}

// Create implements port.Store.
func (s *store) Create(ctx context.Context, first port.Write, key *port.IdempotencyKey, with ...port.Write) (*run.Run, error) {
	if s.down {
		return nil, fault.New(fault.Unavailable, "the store is down")
	}
	if s.around == nil {
		return s.Store.Create(ctx, first, key, with...)
	}
	var known *run.Run
	err := s.around(func() (err error) {
		known, err = s.Store.Create(ctx, first, key, with...)
		return err
	})
	return known, err
}

// Heartbeat implements port.Store.
func (s *store) Heartbeat(ctx context.Context, ref run.Ref, b run.Heartbeat) (run.Heartbeat, error) {
	if s.down || s.noHeartbeats {
		return run.Heartbeat{}, fault.New(fault.Unavailable, "the store is down")
	}
	return s.Store.Heartbeat(ctx, ref, b)
}

// RecordReception implements port.Store.
func (s *store) RecordReception(ctx context.Context, before, after port.Reception) error {
	if s.down || s.noHeartbeats {
		return fault.New(fault.Unavailable, "the store is down")
	}
	return s.Store.RecordReception(ctx, before, after)
}

// Reconcile implements port.Store.
func (s *store) Reconcile(ctx context.Context, tenant, pool string) (int, error) {
	s.reconciled = append(s.reconciled, pool)
	return s.Store.Reconcile(ctx, tenant, pool)
}

// SavePool implements port.PoolStore.
func (s *store) SavePool(ctx context.Context, p platform.Pool, notes ...port.Note) error {
	save := func() error { return s.Store.SavePool(ctx, p, notes...) }
	if s.crash != nil {
		return s.crash(save)
	}
	return save()
}

// Commit implements port.Store.
func (s *store) Commit(ctx context.Context, writes ...port.Write) error {
	if s.crash != nil {
		return s.crash(func() error { return s.commit(ctx, writes...) })
	}
	return s.commit(ctx, writes...)
}

func (s *store) commit(ctx context.Context, writes ...port.Write) error {
	if s.down {
		return fault.New(fault.Unavailable, "the store is down")
	}
	if do := s.before; do != nil && len(writes) > 1 {
		s.before = nil
		do()
	}
	if pool := s.full; pool != "" && len(writes) > 1 {
		s.full = ""
		return &port.NoSlot{Pool: pool}
	}
	if do := s.beforeTimeout; do != nil && !writes[0].Heartbeat.Evaluated.IsZero() {
		s.beforeTimeout = nil
		do()
	}
	err := s.Store.Commit(ctx, writes...)
	if err == nil {
		var refs []run.Ref
		for _, w := range writes {
			refs = append(refs, w.Run.Ref())
		}
		s.commits = append(s.commits, refs)
	}
	return err
}

// executions is the engine with lost calls: lostRequests counts the next requests
// to drop by call, lostAnswers the next answers.
type executions struct {
	*engine.Engine
	lostRequests, lostAnswers map[string]int
	// first runs before each call; subject is an execution's name or a token.
	first func(call, subject string)
	// slow is how long each call takes by clock.
	slow  time.Duration
	clock *clock
	// joins makes calls with commits. Those calls are never lost.
	joins bool
}

func (e *executions) call(ctx context.Context, name, subject string, do func() error) error {
	if e.first != nil {
		e.first(name, subject)
	}
	if err := e.wait(ctx); err != nil {
		return err
	}
	if e.lostRequests[name] > 0 {
		e.lostRequests[name]--
		return fault.New(fault.Unavailable, "%s was lost", name)
	}
	err := do()
	if e.lostAnswers[name] > 0 {
		e.lostAnswers[name]--
		return fault.New(fault.Unavailable, "the answer to %s was lost", name)
	}
	return err
}

// wait advances the clock by slow, but not beyond the deadline of ctx.
func (e *executions) wait(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && e.slow > time.Until(deadline) {
		e.clock.to(e.clock.now.Add(time.Until(deadline).Round(time.Second)))
		return context.DeadlineExceeded
	}
	e.clock.to(e.clock.now.Add(e.slow))
	return ctx.Err()
}

// Start implements port.Executions.
func (e *executions) Start(ctx context.Context, name string, input json.RawMessage) error {
	return e.call(ctx, "Start", name, func() error { return e.Engine.Start(ctx, name, input) })
}

// Join implements port.JoinedExecutions.
func (e *executions) Join(ctx context.Context, calls ...port.ExecutionCall) (context.Context, func() []bool) {
	if e.joins {
		return e.Engine.Join(ctx, calls...)
	}
	ctx, finish := e.Engine.Join(ctx) // the step of the caller alone
	return ctx, func() []bool { finish(); return make([]bool, len(calls)) }
}

// Succeed implements port.Executions.
func (e *executions) Succeed(ctx context.Context, token string, output json.RawMessage) error {
	return e.call(ctx, "Succeed", token, func() error { return e.Engine.Succeed(ctx, token, output) })
}

// Fail implements port.Executions.
func (e *executions) Fail(ctx context.Context, token, name, cause string) error {
	return e.call(ctx, "Fail", token, func() error { return e.Engine.Fail(ctx, token, name, cause) })
}

// Heartbeat implements port.Executions.
func (e *executions) Heartbeat(ctx context.Context, token string) error {
	return e.call(ctx, "Heartbeat", token, func() error { return e.Engine.Heartbeat(ctx, token) })
}

// Stop implements port.Executions.
func (e *executions) Stop(ctx context.Context, name, cause string) error {
	return e.call(ctx, "Stop", name, func() error { return e.Engine.Stop(ctx, name, cause) })
}
