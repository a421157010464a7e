package runs

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/domain/forecast"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// forecasts reads the pools and the queues that a run waits for, and predicts its start. It writes
// nothing.
type forecasts struct {
	*constraints
	pools     *capacity.Pools
	estimates *capacity.Estimates
}

// joinsKey predicts the start of a run that joins the queue of its key.
func (s *forecasts) joinsKey(ctx context.Context, r run.Run, since time.Time) *forecast.Prediction {
	key := platform.Pool{Tenant: r.Tenant, ID: platform.KeyPool(r.Concurrency.Key), Limit: r.Concurrency.Limit}
	return s.joinsBefore(ctx, r, 0, capacity.Entry{Pool: key, Slot: r.Joined(run.AdmitKeyQueue, since).KeySlot})
}

// waitsBy predicts the start of a run that waits because of an action. It returns nil for skip,
// and for kill_old, which ends the holders of the slots.
func (s *forecasts) waitsBy(ctx context.Context, r run.Run, action spec.Action) *forecast.Prediction {
	var delay time.Duration
	switch action.Type {
	case spec.ActionSkip, spec.ActionKillOld:
		return nil
	case spec.ActionRetryLater:
		delay = action.RetryDelay()
	}
	slots := r.JobLimit(r.Constraints.MaxConcurrentRuns)
	if slots == 0 {
		return s.joinsBefore(ctx, r, delay)
	}
	job := platform.Pool{Tenant: r.Tenant, ID: platform.JobPool(r.JobID), Limit: slots}
	return s.joinsBefore(ctx, r, delay, capacity.Entry{Pool: job, Slot: r.QueuedJobSlot()})
}

// joinsBefore predicts the start of a run that joins other queues before the queue of its pool.
// It waits for its first slot at least delay.
func (s *forecasts) joinsBefore(ctx context.Context, r run.Run, delay time.Duration, before ...capacity.Entry) *forecast.Prediction {
	pool, err := s.poolOf(ctx, r)
	var slot platform.Slot
	if err == nil {
		slot, err = s.joined(ctx, r, pool)
	}
	var p *forecast.Prediction
	if err == nil {
		p, err = s.estimates.JoinsAfter(ctx, r, delay, append(before, capacity.Entry{Pool: pool, Slot: slot})...)
	}
	return s.predicted(ctx, r, p, err)
}

// joined returns the slot with which the run would join the queue of a pool, of its job or of
// its key.
func (s *forecasts) joined(ctx context.Context, r run.Run, pool platform.Pool) (platform.Slot, error) {
	now := s.now()
	switch {
	case r.JobID != "" && pool.ID == platform.JobPool(r.JobID):
		return r.QueuedJobSlot(), nil
	case r.Concurrency != nil && pool.ID == platform.KeyPool(r.Concurrency.Key):
		return r.Joined(run.AdmitKeyQueue, now).KeySlot, nil
	}
	line, err := s.store.QueueState(ctx, r.Tenant, r.SlotOf(pool.ID, pool.Limit))
	return r.SlotOf(pool.ID, pool.Limit).Joining(line, now), err
}

// predicted returns the prediction, or logs the error and returns nil: a run does not depend on
// its prediction.
func (s *forecasts) predicted(ctx context.Context, r run.Run, p *forecast.Prediction, err error) *forecast.Prediction {
	if err != nil {
		s.warn(ctx, r, "cannot predict the start of the run", err)
		return nil
	}
	return p
}
