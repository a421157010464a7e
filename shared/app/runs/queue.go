package runs

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// queuePage is the number of queued runs that one grant reads.
const queuePage = 8

// takeSlot takes the run's free slots or enqueues it. If the run changes meanwhile, it
// returns the newest record.
func (s *Lifecycle) takeSlot(ctx context.Context, r run.Run, in StepInput) (run.Run, error) {
	pool, err := s.pools.ForAdmission(ctx, r.Tenant, s.pools.Ref(r.Tenant, r.Slot.Pool).ID)
	if err != nil {
		return r, err
	}
	if r.FansOut() {
		pool.Limit = 0 // only the children need slots
	}
	full, err := s.mustQueue(ctx, pool)
	if err != nil {
		return r, err
	}
	room := run.Room{PoolFull: full}
	for range port.CommitTries {
		after, err := s.admit(ctx, r, pool, room, in)
		missing, none := errors.AsType[*port.NoSlot](err)
		switch {
		case none && r.Concurrency != nil && missing.Pool == platform.KeyPool(r.Concurrency.Key):
			if room, err = s.keyRoom(ctx, r, room); err != nil {
				return r, err
			}
		case none:
			room.PoolFull = true
		case errors.Is(err, port.ErrConflict):
			// Another run of the key has joined, or this one has changed.
			if r, err = s.store.Load(ctx, r.Ref()); err != nil {
				return r, err
			}
		case err != nil:
			return after, err
		default:
			// A slot may have been released between two commits.
			if after.AwaitsKey() {
				s.fill(ctx, r.Tenant, after.KeySlot.Pool)
			} else if after.Queued() {
				s.fill(ctx, r.Tenant, pool.ID)
				s.fillSharing(ctx, after)
			}
			return after, nil
		}
	}
	return r, fault.New(fault.Unavailable, "too many concurrent changes of the queues of run %s; retry", r.ID)
}

// admit commits the admission of a run that needs slots. It returns *port.NoSlot if a slot or
// place that room shows as free was taken.
func (s *Lifecycle) admit(ctx context.Context, r run.Run, pool platform.Pool, room run.Room, in StepInput) (run.Run, error) {
	var f run.Fact
	var with []run.Decision
	limit, err := s.keyLimit(ctx, r)
	if err != nil {
		return r, err
	}
	switch r.Admit(room) {
	case run.AdmitStart:
		p, err := s.estimates.Admitted(ctx, r, pool)
		f = run.Admitted{Pool: pool.ID, Limit: pool.Limit, KeyLimit: limit, Prediction: s.predicted(ctx, r, p, err)}
	case run.AdmitQueue:
		line, err := s.store.QueueState(ctx, r.Tenant, r.SlotOf(pool.ID, pool.Limit))
		if err != nil {
			return r, err
		}
		p, err := s.estimates.Joins(ctx, r, capacity.Entry{Pool: pool, Slot: r.SlotOf(pool.ID, pool.Limit).Joining(line, r.EnteredAt)})
		f = run.Enqueued{Pool: pool.ID, Limit: pool.Limit, Queue: line, KeyLimit: limit, Prediction: s.predicted(ctx, r, p, err)}
	case run.AdmitKeyQueue:
		f = run.KeyEnqueued{Prediction: s.joinsKey(ctx, r, r.EnteredAt)}
	case run.AdmitReplace:
		replaced, err := s.replace(ctx, r, room)
		if err != nil {
			return r, err
		}
		f, with = run.KeyEnqueued{Replaces: len(replaced) > 0, Prediction: s.joinsKey(ctx, r, r.EnteredAt)}, replaced
	case run.AdmitSkip, run.AdmitReject:
		f = run.KeyOverflowed{By: s.firstOf(ctx, r), Queued: room.KeyQueued}
	}
	d, err := run.Decide(r, in.visited(constantFact(f))(r), s.now())
	if err != nil || !d.Changed {
		return r, err
	}
	return s.commitWith(ctx, d, with)
}

// mustQueue reports whether a new run must join the queue of the pool. It must if the pool is
// draining. It also must if a pool without a limit has queued runs, which wait because starts
// were throttled. In a pool with a limit, the commit refuses to overtake queued runs.
func (s *constraints) mustQueue(ctx context.Context, pool platform.Pool) (bool, error) {
	if pool.Draining || pool.Limit > 0 {
		return pool.Draining, nil
	}
	queue, err := s.store.Queue(ctx, pool.Tenant, pool.ID, 1)
	if err != nil {
		return false, fmt.Errorf("cannot read the queue of pool %s: %w", pool.ID, err)
	}
	return len(queue) > 0, nil
}

// slotGrant is the grant of a slot to a queued run. It has no decision if the queue is empty, or
// the next permitted start is too far ahead. limiter is the start limiter after the grant; nil if the
// grant needs no permit.
type slotGrant struct {
	decisions []run.Decision
	limiter   *fleet.StartLimiter
}

// nextQueued decides the grant to the first queued run that still needs a slot or a
// start.
func (s *Lifecycle) nextQueued(ctx context.Context, tenant, pool string) (slotGrant, error) {
	queue, err := s.store.Queue(ctx, tenant, pool, queuePage)
	if err != nil {
		return slotGrant{}, fmt.Errorf("cannot read the queue of pool %s: %w", pool, err)
	}
	for _, ref := range queue {
		r, err := s.store.Load(ctx, ref)
		waits := r.Queued()
		switch pool {
		case r.JobSlot.Pool:
			waits = r.AwaitsJobSlot()
		case r.KeySlot.Pool:
			waits = r.AwaitsKey()
		}
		if errors.Is(err, port.ErrNotFound) || err == nil && !waits {
			continue
		}
		if err != nil {
			return slotGrant{}, err
		}
		switch pool {
		case r.JobSlot.Pool:
			limit, err := s.jobLimit(ctx, r)
			if err != nil {
				return slotGrant{}, err
			}
			d, err := run.Decide(r, run.JobGranted{Limit: limit}, s.now())
			return slotGrant{decisions: []run.Decision{d}}, err
		case r.KeySlot.Pool:
			return s.nextOfKey(ctx, r)
		}
		from, err := s.pools.ForAdmission(ctx, tenant, pool)
		if err != nil || from.Draining {
			return slotGrant{}, err
		}
		limiter, err := s.store.StartLimiter(ctx, pool)
		if err != nil {
			return slotGrant{}, err
		}
		granted, after, ok := limiter.Grant(r, from.Limit, s.now())
		if !ok {
			return slotGrant{}, nil
		}
		d, err := run.Decide(r, granted, s.now())
		return slotGrant{[]run.Decision{d}, after}, err
	}
	return slotGrant{}, nil
}

// fill grants free slots and permitted starts to at most port.CommitTries queued runs. It
// returns whether more grants may be possible. The sweep repeats failed grants.
func (s *Lifecycle) fill(ctx context.Context, tenant, pool string) (more bool) {
	for range port.CommitTries {
		first, err := s.nextQueued(ctx, tenant, pool)
		if err == nil && len(first.decisions) > 0 {
			err = s.write(ctx, first.decisions, first.limiter)
		}
		if err == nil {
			for _, pool := range joinedPools(first.decisions) {
				s.fill(ctx, tenant, pool)
			}
		}
		switch {
		case err == nil && len(first.decisions) == 0, errors.Is(err, port.ErrNoSlot):
			return false
		case err != nil && !errors.Is(err, port.ErrConflict):
			s.log.WarnContext(ctx, "cannot grant free slots", "pool", pool, "error", err.Error())
			return false
		}
	}
	return true
}

// fillSharing is fill for the pools that share their slots with the pool of a task.
func (s *Lifecycle) fillSharing(ctx context.Context, r run.Run) {
	if r.Work.Inference == nil {
		return
	}
	for _, ref := range s.pools.Sharing(platform.PoolRef{Tenant: r.Tenant, ID: r.Slot.Pool}) {
		s.fill(ctx, ref.Tenant, ref.ID)
	}
}

// fillAll grants every free slot of a pool, a job or a key to queued runs, as far as the time
// of ctx permits. The sweep grants the rest.
func (s *Lifecycle) fillAll(ctx context.Context, tenant, pool string) {
	for more := true; more && ctx.Err() == nil; {
		more = s.fill(ctx, tenant, pool)
	}
}
