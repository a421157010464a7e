package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// keyRoom updates the room of a run after a commit failed with ErrNoSlot for its key. The first
// failure means that no slot of the key is free, the second that its queue is full.
func (s *constraints) keyRoom(ctx context.Context, r run.Run, room run.Room) (run.Room, error) {
	c := r.Concurrency
	if room.KeyFull {
		room.KeyQueued = c.QueueLimit // the commit has counted the queue; QueueLength may be stale
		return room, nil
	}
	room.KeyFull = true
	queued, err := s.store.QueueLength(ctx, r.Tenant, platform.KeyPool(c.Key), max(c.QueueLimit, 1))
	if err != nil {
		return room, fmt.Errorf("cannot count the queue of key %s: %w", c.Key, err)
	}
	room.KeyQueued = queued
	return room, nil
}

// createRun stores a new run. If the idempotency key was used, it stores nothing, and known is
// the run of the first use. If the queue of its key has a limit, the run joins its key in the
// same commit. So the request can fail with AdmissionReject. A run that it replaces ends in
// that commit. A task that the dispatcher can start at once gets its slot and worker in that
// commit.
func (s *Requests) createRun(
	ctx context.Context, r run.Run, under *port.IdempotencyKey, now time.Time,
) (created run.Run, known *run.Run, err error) {
	var room run.Room
	begins := s.tasks.TryTake(ctx, r)
	defer func() {
		if begins != nil {
			begins.GiveUp()
		}
	}()
	for range port.CommitTries {
		d, replaced, err := s.creation(ctx, r, room, begins, now)
		if err != nil {
			return run.Run{}, nil, err
		}
		with := make([]port.Write, len(replaced))
		for i, old := range replaced {
			with[i] = port.WriteOf(old)
		}
		made, err := s.commitWithEffects(ctx, append(replaced, d), func(ctx context.Context) (err error) {
			known, err = s.store.Create(ctx, port.WriteOf(d), under, with...)
			return err
		})
		conflict, lost := errors.AsType[*port.Conflict](err)
		switch {
		case errors.Is(err, port.ErrNoSlot) && begins != nil: // it is stored without a slot, and then joins the queue
			begins.GiveUp()
			begins = nil
			continue
		case errors.Is(err, port.ErrNoSlot):
			if room, err = s.keyRoom(ctx, r, room); err != nil {
				return run.Run{}, nil, err
			}
			continue
		case lost && conflict.Ref != r.Ref():
			continue // the run to replace has changed
		case err != nil || known != nil:
			return run.Run{}, known, err
		}
		for _, each := range append(replaced, d) {
			s.committed(ctx, &each)
			each.Run.Version++
			s.act(ctx, &each.Run, each.Effects, made)
			s.actForSkipped(ctx, each)
		}
		d.Run.Version = 1
		if begins != nil {
			s.queue.Committed(&d)
			begins.Start(d.Run)
			begins = nil
		}
		if d.Run.AwaitsKey() { // a slot may have been released since the commit found none
			s.fill(ctx, r.Tenant, d.Run.KeySlot.Pool)
		}
		return d.Run, nil, nil
	}
	return run.Run{}, nil, fault.New(fault.Unavailable, "too many concurrent changes of the queue of the key; retry")
}

// actForSkipped carries out the job's actions for a run that a request has skipped. It has the
// time budget of the request's effects. The sweep repeats unfinished actions. For a run that is skipped
// after others, follow does.
func (s *effects) actForSkipped(ctx context.Context, d run.Decision) {
	if !d.Run.Skipped || d.Run.Missed != nil && d.Run.Graph != nil {
		return
	}
	err := s.inBudget(ctx, func(ctx context.Context) error {
		s.actForJob(ctx, &d.Run, d.Effects)
		return nil
	})
	if err != nil {
		s.warn(ctx, d.Run, "the actions of the job are left to a sweep", err)
	}
}

// creation decides the creation of a run with the given room, and the end of a run that it
// replaces. begins is nil for a run that gets its slot later. Fault: AdmissionReject.
func (s *Requests) creation(
	ctx context.Context, r run.Run, room run.Room, begins PreparedTask, now time.Time,
) (d run.Decision, replaced []run.Decision, err error) {
	if r.Missed != nil {
		return run.NewSkipped(r, now), nil, nil
	}
	if begins != nil {
		d, err = begins.Creation(ctx, r, now)
		return d, nil, err
	}
	if !r.JoinsAtOnce(now) {
		return run.New(r, now), nil, nil
	}
	admission := r.Admit(room)
	switch admission {
	case run.AdmitReplace:
		if replaced, err = s.replace(ctx, r, room); err != nil {
			return d, nil, err
		}
		if len(replaced) == 0 {
			admission = run.AdmitKeyQueue
		}
	case run.AdmitSkip:
		return run.NewOverflowed(r, run.KeyOverflowed{By: s.firstOf(ctx, r), Queued: room.KeyQueued}, now), nil, nil
	case run.AdmitReject:
		return d, nil, fault.New(fault.AdmissionReject, "the queue of key %s is full: %d runs are waiting; retry later", r.Concurrency.Key, room.KeyQueued)
	}
	r = r.Joined(admission, now)
	if r.KeySlot.State == platform.SlotQueued {
		r.Prediction = s.joinsKey(ctx, r, now)
	}
	return run.New(r, now), replaced, nil
}

// replace decides the end of the first queued run of the key, which r replaces. It returns no
// decision if no run is queued.
func (s *constraints) replace(ctx context.Context, r run.Run, room run.Room) ([]run.Decision, error) {
	queue, err := s.store.Queue(ctx, r.Tenant, platform.KeyPool(r.Concurrency.Key), queuePage)
	if err != nil {
		return nil, fmt.Errorf("cannot read the queue of key %s: %w", r.Concurrency.Key, err)
	}
	for _, ref := range queue {
		old, err := s.store.Load(ctx, ref)
		if errors.Is(err, port.ErrNotFound) || err == nil && !old.AwaitsKey() {
			continue
		}
		if err != nil {
			return nil, err
		}
		d, err := run.Decide(old, run.KeyOverflowed{By: r.ID, Queued: room.KeyQueued}, s.now())
		return []run.Decision{d}, err
	}
	return nil, nil
}

// firstOf returns the id of the first queued run of the run's key. It is empty if no run is
// queued or the queue cannot be read.
func (s *constraints) firstOf(ctx context.Context, r run.Run) string {
	queue, err := s.store.Queue(ctx, r.Tenant, platform.KeyPool(r.Concurrency.Key), 1)
	if err != nil || len(queue) == 0 {
		return ""
	}
	return queue[0].ID
}

// keyLimit returns the limit of the run's key from the newest definition of its job. It returns
// 0 if that definition does not have the key; the limit of the run then applies.
func (s *constraints) keyLimit(ctx context.Context, r run.Run) (int, error) {
	if r.JobID == "" || r.Concurrency == nil {
		return 0, nil
	}
	newest, err := s.loadJob(ctx, r)
	if err != nil || newest == nil {
		return 0, err
	}
	if c := newest.Run(s.policy).With(r.Override).Concurrency; c != nil && c.Key == r.Concurrency.Key {
		return c.Limit, nil
	}
	return 0, nil
}

// nextOfKey decides to grant the run a slot of its key.
func (s *Lifecycle) nextOfKey(ctx context.Context, r run.Run) (slotGrant, error) {
	pool, err := s.pools.ForRun(ctx, r.Tenant, s.pools.Ref(r.Tenant, r.Slot.Pool).ID)
	if err != nil {
		return slotGrant{}, err
	}
	line, err := s.store.QueueState(ctx, r.Tenant, r.SlotOf(pool.ID, pool.Limit))
	if err != nil {
		return slotGrant{}, err
	}
	limit, err := s.keyLimit(ctx, r)
	if err != nil {
		return slotGrant{}, err
	}
	d, err := run.Decide(r, run.KeyGranted{Pool: pool.ID, Limit: pool.Limit, Queue: line, KeyLimit: limit}, s.now())
	return slotGrant{decisions: []run.Decision{d}}, err
}

// joinedPools returns the pools whose queues runs join as they get a slot of their key. These
// pools may have a free slot.
func joinedPools(decisions []run.Decision) (pools []string) {
	for i := range decisions {
		if d := &decisions[i]; d.KeyLease == run.LeaseGrant && d.Lease == run.LeaseEnqueue {
			pools = append(pools, d.Run.Slot.Pool)
		}
	}
	return pools
}
