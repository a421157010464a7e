package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// queuePage is how many queued runs one grant looks at.
const queuePage = 8

// takeSlot takes a free slot or enqueues the run. If the run changes meanwhile, it
// returns the newest record.
func (s *Lifecycle) takeSlot(ctx context.Context, r run.Run, in StepInput) (run.Run, error) {
	overtakes, err := s.overtakes(ctx, r)
	if err != nil {
		return r, err
	}
	if !overtakes {
		admitted, err := s.applyTo(ctx, r, in.visited(is(run.Admitted{Pool: s.pool, Limit: s.limit})))
		if !errors.Is(err, port.ErrNoSlot) {
			return admitted, err
		}
	}
	queued, err := s.applyTo(ctx, r, in.visited(is(run.Enqueued{Pool: s.pool, Limit: s.limit})))
	if err != nil {
		return queued, err
	}
	// A slot may have been released between the two commits.
	s.fill(ctx, r.Tenant, s.pool)
	return queued, nil
}

// overtakes reports whether a new run of a pool without a limit would overtake runs
// whose starts are throttled. With a limit the commit itself refuses that.
func (s *Lifecycle) overtakes(ctx context.Context, r run.Run) (bool, error) {
	if s.limit > 0 {
		return false, nil
	}
	queue, err := s.store.Queue(ctx, r.Tenant, s.pool, 1)
	if err != nil {
		return false, fmt.Errorf("cannot read the queue of pool %s: %w", s.pool, err)
	}
	return len(queue) > 0, nil
}

// next is the grant to a queued run: none if the queue is empty or if the next
// permitted start is too far ahead. gate is the gate after it; nil if the grant
// needs no permit.
type next struct {
	decisions []run.Decision
	gate      *run.StartGate
}

// nextQueued decides the grant to the first queued run that still needs a slot or a
// start.
func (s *Lifecycle) nextQueued(ctx context.Context, tenant, pool string) (next, error) {
	queue, err := s.store.Queue(ctx, tenant, pool, queuePage)
	if err != nil {
		return next{}, fmt.Errorf("cannot read the queue of pool %s: %w", pool, err)
	}
	for _, ref := range queue {
		r, err := s.store.Load(ctx, ref)
		waits := r.Queued()
		if pool == r.JobSlot.Pool {
			waits = r.AwaitsJobSlot()
		}
		if errors.Is(err, port.ErrNotFound) || err == nil && !waits {
			continue
		}
		if err != nil {
			return next{}, err
		}
		if pool == r.JobSlot.Pool {
			d, err := run.Decide(r, run.JobGranted{}, s.now())
			return next{decisions: []run.Decision{d}}, err
		}
		gate, err := s.store.StartGate(ctx, pool)
		if err != nil {
			return next{}, err
		}
		granted, after, ok := gate.Grant(r, s.limit, s.now())
		if !ok {
			return next{}, nil
		}
		d, err := run.Decide(r, granted, s.now())
		return next{[]run.Decision{d}, after}, err
	}
	return next{}, nil
}

// fill grants free slots and permitted starts to queued runs as long as it can.
// The sweep repeats what fails.
func (s *Lifecycle) fill(ctx context.Context, tenant, pool string) {
	for range commitTries {
		first, err := s.nextQueued(ctx, tenant, pool)
		if err == nil && len(first.decisions) > 0 {
			err = s.write(ctx, first.decisions, first.gate)
		}
		switch {
		case err == nil && len(first.decisions) == 0, errors.Is(err, port.ErrNoSlot):
			return
		case err != nil && !errors.Is(err, port.ErrConflict):
			s.log.WarnContext(ctx, "cannot grant free slots", "pool", pool, "error", err.Error())
			return
		}
	}
}
