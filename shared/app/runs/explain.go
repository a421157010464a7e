package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/explain"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// facts reads the pool, the queues, the limits and the results that the run may wait for.
func (s *forecasts) facts(ctx context.Context, r run.Run) (f explain.Facts, err error) {
	f.Now = s.now()
	if r.State.Terminal() {
		return f, nil
	}
	pool, err := s.pools.ForRun(ctx, r.Tenant, s.pools.Ref(r.Tenant, r.NextPool()).ID)
	if err != nil {
		return f, err
	}
	f.Fallbacks = s.fallbacks(ctx, r)
	if f.Pool, err = s.queueOf(ctx, r, pool, r.Slot); err != nil {
		return f, err
	}
	f.Pool.Unknown = pool.Draining && pool.Version == 0
	if f.Limiter, err = s.store.StartLimiter(ctx, pool.ID); err != nil {
		return f, err
	}
	slots, err := s.jobLimit(ctx, r)
	if err != nil {
		return f, err
	}
	if slots > 0 {
		q, err := s.queueOf(ctx, r, platform.Pool{ID: platform.JobPool(r.JobID), Limit: slots}, r.JobSlot)
		if err != nil {
			return f, err
		}
		q.Name = r.JobID
		f.Job = &q
	}
	if c := r.Concurrency; c != nil {
		q, err := s.queueOf(ctx, r, platform.Pool{ID: platform.KeyPool(c.Key), Limit: c.Limit}, r.KeySlot)
		if err != nil {
			return f, err
		}
		q.Name = c.Key
		f.Key = &q
	}
	if c := r.Constraints; c != nil && c.RequirePreviousSuccess && r.JobID != "" {
		last, err := s.store.LastResult(ctx, r.Tenant, r.JobID)
		if err == nil {
			f.Last = &last
		} else if !isNotFound(err) {
			return f, fmt.Errorf("cannot read the last result of job %s: %w", r.JobID, err)
		}
		if f.Previous, err = s.previousNow(ctx, r); err != nil {
			return f, err
		}
	}
	if r.State == run.ContainerCreating {
		f.Refusal, err = s.refusal(ctx, r)
	}
	return f, err
}

// previousNow returns the violation of requirePreviousSuccess by the previous run; nil without
// one. A run that does not exist yet is newer than all others.
func (s *forecasts) previousNow(ctx context.Context, r run.Run) (*spec.ConstraintViolation, error) {
	if r.CreatedAt.IsZero() {
		r.CreatedAt = s.now().Add(time.Nanosecond)
	}
	newest, err := s.jobOf(ctx, r)
	if err != nil {
		return nil, err
	}
	v, violated, err := s.checkPrevious(ctx, r, newest)
	if err != nil || !violated {
		return nil, err
	}
	return &v, nil
}

// queueOf reads the slots and the queue of a pool, with the run's position if it is queued
// there, or the runs ahead of it if it has not joined.
func (s *forecasts) queueOf(ctx context.Context, r run.Run, pool platform.Pool, slot platform.Slot) (q explain.Queue, err error) {
	if q, err = s.estimates.Read(ctx, r.Tenant, pool); err != nil {
		return q, err
	}
	waits, err := s.store.Queue(ctx, r.Tenant, pool.ID, limit.QueuePositions)
	if err != nil {
		return q, fmt.Errorf("cannot read the queue of pool %s: %w", pool.ID, err)
	}
	q.Queued = len(waits)
	switch slot.State {
	case platform.SlotQueued:
		if q.Position = slices.Index(waits, r.Ref()); q.Position < 0 {
			q.Position = len(waits)
		}
	case "":
		joined, err := s.joined(ctx, r, pool)
		if err != nil {
			return q, err
		}
		if q.Ahead, err = s.store.QueueAhead(ctx, r.Tenant, joined, limit.QueuePositions); err != nil {
			return q, fmt.Errorf("cannot count the queue of pool %s: %w", pool.ID, err)
		}
	}
	q.Measures, err = s.estimates.Measured(ctx, r.Tenant, pool.ID)
	return q, err
}

// refusal returns the reason of the last refused start of the run's attempt; empty without one
// in the last events.
func (s *forecasts) refusal(ctx context.Context, r run.Run) (string, error) {
	const recent = 10
	events, err := s.store.Events(ctx, r.Ref(), max(r.EventCount-recent, 0), recent)
	if err != nil {
		return "", fmt.Errorf("cannot read the events: %w", err)
	}
	for _, e := range slices.Backward(events) {
		if e.Type == run.EventStartRefused && e.Attempt == r.Attempt.Number {
			return e.Message, nil
		}
	}
	return "", nil
}

func isNotFound(err error) bool { return errors.Is(err, port.ErrNotFound) }

// poolOf returns the pool of a run.
func (s *forecasts) poolOf(ctx context.Context, r run.Run) (platform.Pool, error) {
	return s.pools.ForRun(ctx, r.Tenant, s.pools.Ref(r.Tenant, r.Slot.Pool).ID)
}
