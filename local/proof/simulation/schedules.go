package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/functions/fire"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
)

// schedules are the wake-ups of jobs. They arrive late, twice, after they were replaced, or
// never. Those of the local system are lost with its process.
type schedules struct {
	w *base
	// wakeUps maps each job to the number of its newest wake-up.
	wakeUps map[job.Ref]int
	count   int
}

// promised limits the delay of a wake-up without a fault: EventBridge Scheduler guarantees the
// minute.
const promised = time.Minute

// call makes a call whose request or response can be lost.
func (s *schedules) call(ctx context.Context, do func()) error {
	w := s.w
	w.maybeCrash()
	w.maybeInterrupt()
	if err := interrupted(ctx); err != nil {
		return err
	}
	if w.chance(w.plan.lostCalls) {
		return fault.New(fault.Unavailable, "request lost")
	}
	do()
	w.maybeCrash()
	if w.chance(w.plan.lostCalls) {
		return fault.New(fault.Unavailable, "response lost")
	}
	return nil
}

// Set implements port.Schedules.
func (s *schedules) Set(ctx context.Context, ref job.Ref, at time.Time) error {
	return s.call(ctx, func() {
		w := s.w
		s.count++
		s.wakeUps[ref] = s.count
		wait := max(at.Sub(w.time.now), time.Second)
		if w.home.survivesCrash() {
			wait += w.upTo(promised)
		} else {
			wait = max(at.Sub(hostClock{w}.Now()), 0)
		}
		if w.chance(w.plan.lostWakeUps) {
			return
		}
		s.deliver(ref, s.count, wait)
		if w.chance(w.plan.lostWakeUps) {
			s.deliver(ref, s.count, wait+w.upTo(2*time.Minute))
		}
	})
}

// Precision implements port.Schedules.
func (s *schedules) Precision() time.Duration { return s.w.precision() }

// Remove implements port.Schedules.
func (s *schedules) Remove(ctx context.Context, ref job.Ref) error {
	return s.call(ctx, func() { delete(s.wakeUps, ref) })
}

// deliver delivers a wake-up after a delay. Sometimes it also delivers a wake-up that was
// replaced before.
func (s *schedules) deliver(ref job.Ref, number int, wait time.Duration) {
	w, p := s.w, s.w.process
	stale := w.chance(w.plan.lostWakeUps)
	w.time.push(wait, true, func() {
		if s.wakeUps[ref] != number && !stale || w.process != p && !w.home.survivesCrash() {
			return
		}
		w.time.spawn(true, func() { w.fire(ref) })
	})
}

// fire wakes a job.
func (w *base) fire(ref job.Ref) {
	if w.down(processOutage) || w.home.survivesCrash() && w.down(executionsOutage) {
		return
	}
	w.call(func(ctx context.Context) {
		input, err := json.Marshal(ref)
		if err != nil {
			w.broken = fmt.Errorf("wake-up: %w", err)
			return
		}
		_, err = fire.Handler(w.system.Firing)(ctx, input)
		w.note("wake-up of %s: %v", ref.ID, err)
	})
}
