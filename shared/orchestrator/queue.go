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
	admitted, err := s.applyTo(ctx, r, in.visited(is(run.Admitted{Pool: s.pool, Limit: s.limit})))
	if !errors.Is(err, port.ErrNoSlot) {
		return admitted, err
	}
	queued, err := s.applyTo(ctx, r, in.visited(is(run.Enqueued{Pool: s.pool, Limit: s.limit})))
	if err != nil {
		return queued, err
	}
	// A slot may have been released between the two commits.
	s.fill(ctx, r.Tenant, s.pool)
	return queued, nil
}

// nextQueued decides the grant to the first queued run that still needs a slot.
// The result is empty if no such run exists.
func (s *Lifecycle) nextQueued(ctx context.Context, tenant, pool string) ([]run.Decision, error) {
	queue, err := s.store.Queue(ctx, tenant, pool, queuePage)
	if err != nil {
		return nil, fmt.Errorf("cannot read the queue of pool %s: %w", pool, err)
	}
	for _, ref := range queue {
		r, err := s.store.Load(ctx, ref)
		if errors.Is(err, port.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		d, err := run.Decide(r, run.Granted{Limit: s.limit}, s.now())
		if err != nil {
			return nil, err
		}
		if d.Changed {
			return []run.Decision{d}, nil
		}
	}
	return nil, nil
}

// fill grants free slots until there is no free slot or no queued run. The sweep
// repeats what fails.
func (s *Lifecycle) fill(ctx context.Context, tenant, pool string) {
	for range commitTries {
		next, err := s.nextQueued(ctx, tenant, pool)
		if err == nil && len(next) > 0 {
			err = s.write(ctx, next)
		}
		switch {
		case err == nil && len(next) == 0, errors.Is(err, port.ErrNoSlot):
			return
		case err != nil && !errors.Is(err, port.ErrConflict):
			s.log.WarnContext(ctx, "cannot grant free slots", "pool", pool, "error", err.Error())
			return
		}
	}
}
