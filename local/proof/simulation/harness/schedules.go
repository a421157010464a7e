package harness

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
	W *Base
	// wakeUps maps each job to the number of its newest wake-up.
	wakeUps map[job.Ref]int
	count   int
}

// Promised limits the delay of a wake-up without a fault: EventBridge Scheduler guarantees the
// minute.
const Promised = time.Minute

// Call makes a call whose request or response can be lost.
func (s *schedules) Call(ctx context.Context, do func()) error {
	w := s.W
	w.MaybeCrash()
	w.MaybeInterrupt()
	if err := Interrupted(ctx); err != nil {
		return err
	}
	if w.Injects("lost call", w.Plan.LostCalls) {
		return fault.New(fault.Unavailable, "request lost")
	}
	do()
	w.MaybeCrash()
	if w.Injects("lost call", w.Plan.LostCalls) {
		return fault.New(fault.Unavailable, "response lost")
	}
	return nil
}

// Set implements port.Schedules.
func (s *schedules) Set(ctx context.Context, ref job.Ref, at time.Time) error {
	return s.Call(ctx, func() {
		w := s.W
		s.count++
		s.wakeUps[ref] = s.count
		wait := max(at.Sub(w.Time.Now), time.Second)
		if w.Home.SurvivesCrash() {
			wait += w.UpTo(Promised)
		} else {
			wait = max(at.Sub(HostClock{w}.Now()), 0)
		}
		if w.Injects("lost or repeated wake-up", w.Plan.LostWakeUps) {
			return
		}
		s.deliver(ref, s.count, wait)
		if w.Injects("lost or repeated wake-up", w.Plan.LostWakeUps) {
			s.deliver(ref, s.count, wait+w.UpTo(2*time.Minute))
		}
	})
}

// Precision implements port.Schedules.
func (s *schedules) Precision() time.Duration { return s.W.Precision() }

// Remove implements port.Schedules.
func (s *schedules) Remove(ctx context.Context, ref job.Ref) error {
	return s.Call(ctx, func() { delete(s.wakeUps, ref) })
}

// deliver delivers a wake-up after a delay. Sometimes it also delivers a wake-up that was
// replaced before.
func (s *schedules) deliver(ref job.Ref, number int, wait time.Duration) {
	w, p := s.W, s.W.Process
	stale := w.Injects("lost or repeated wake-up", w.Plan.LostWakeUps)
	w.Time.Push(wait, true, func() {
		if s.wakeUps[ref] != number && !stale || w.Process != p && !w.Home.SurvivesCrash() {
			return
		}
		w.Time.Spawn(true, func() { w.Fire(ref) })
	})
}

// Fire wakes a job.
func (w *Base) Fire(ref job.Ref) {
	if w.Down(processOutage) || w.Home.SurvivesCrash() && w.Down(ExecutionsOutage) {
		return
	}
	w.Call(func(ctx context.Context) {
		input, err := json.Marshal(ref)
		if err != nil {
			w.Broken = fmt.Errorf("wake-up: %w", err)
			return
		}
		_, err = fire.Handler(w.System.Firing)(ctx, input)
		w.Note("wake-up of %s: %v", ref.ID, err)
	})
}
