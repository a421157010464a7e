package stack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// startLoops runs the executions and the sweep until the stack stops.
func (s *Stack) startLoops(ctx context.Context) {
	s.loops.Go(func() {
		if err := s.engine.Run(ctx); err != nil && ctx.Err() == nil {
			s.fatal <- fmt.Errorf("the engine failed: %w", err)
		}
	})
	s.loops.Go(func() { s.system.Dispatcher.Run(ctx) })
	<-s.system.Dispatcher.Ready() // before the first sweep, because that resumes tasks
	s.loops.Go(func() { s.schedules.Run(ctx, maxFirings, s.fire) })
	s.loops.Go(func() { s.sweep(ctx) })
	s.loops.Go(func() { s.receive(ctx) })
	s.loops.Go(func() { s.relayChanges(ctx) })
	s.loops.Go(func() { s.sweepStreams(ctx) })
	s.loops.Go(func() { s.pollSensors(ctx) })
	if s.bus != nil {
		s.loops.Go(func() { s.publishEvents(ctx) })
	}
	s.deliverEvents(ctx)
	if s.containers != nil {
		s.loops.Go(func() { s.pruneContainers(ctx) })
	}
	if s.traces != nil {
		s.loops.Go(func() { s.traces.Run(ctx) })
	}
}

// maxFirings limits the jobs that fire concurrently. Their commits share writes of the store.
const maxFirings = 128

// fire commits the due firings of a job. The caller retries after an error.
func (s *Stack) fire(ctx context.Context, ref job.Ref) error {
	err := s.system.Fire(ctx, ref)
	if err != nil && ctx.Err() == nil {
		s.config.Log.WarnContext(ctx, "cannot fire a job; it is repeated", "job_id", ref.ID, "error", err.Error())
	}
	return err
}

// receive records at intervals that this process can receive calls. It is separate from the
// sweep, which may take long.
func (s *Stack) receive(ctx context.Context) {
	for {
		if err := s.system.RecordReception(ctx); err != nil && ctx.Err() == nil {
			s.config.Log.WarnContext(ctx, "cannot record that calls are received", "error", err.Error())
		}
		if !s.sleep(ctx) {
			return
		}
	}
}

// pollSensors looks for the items of sensors that are due. It is separate from the sweep, because a
// bucket or a queue may not answer.
func (s *Stack) pollSensors(ctx context.Context) {
	for s.sleep(ctx) {
		if err := s.sensors.PollDue(ctx); err != nil && ctx.Err() == nil {
			s.config.Log.WarnContext(ctx, "polls of sensors failed; they are repeated", "error", err.Error())
		}
	}
}

// restartHorizon makes the first sweep check runs that are not due yet, because the process
// that would have acted on them may have been killed.
const restartHorizon = 20 * 365 * 24 * time.Hour

// executionRetention is the time for which the name of an ended execution is reserved
// (Step Functions: 90 days).
const executionRetention = 90 * 24 * time.Hour

// sweep runs the sweep at once and after every interval. It also enforces the limit of the
// records, and deletes old executions once an hour.
func (s *Stack) sweep(ctx context.Context) {
	early := restartHorizon
	var purged time.Time
	for {
		if s.system.EffectFailed() {
			early = max(early, run.EffectSlack)
		}
		err := s.system.Sweep(ctx, early)
		early = 0
		if now := s.clock.Now(); now.Sub(purged) > time.Hour {
			_, failed := s.engine.Purge(ctx, now.Add(-executionRetention))
			err, purged = errors.Join(err, failed), now
		}
		err = errors.Join(err, s.keepLimit(ctx))
		if err != nil && ctx.Err() == nil {
			s.config.Log.WarnContext(ctx, "a part of the sweep failed; the next sweep repeats it", "error", err.Error())
		}
		if !s.sleep(ctx) {
			return
		}
	}
}

// sleep waits until the next sweep. It returns false if ctx ends first.
func (s *Stack) sleep(ctx context.Context) bool {
	return clock.Sleep(ctx, s.clock, s.config.SweepInterval) == nil
}
