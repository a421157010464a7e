package explain

import (
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

const positions = limit.QueuePositions

// expect sets the time at which the machine of the current attempt is expected to run.
func (x *Explanation) expect(r run.Run, f Facts) {
	var from time.Time
	var wait Range
	switch {
	case r.Cancel != nil, f.Pool.Draining && r.Slot.State != platform.SlotHeld:
		return
	case r.State == run.Running, r.State == run.Terminating:
		return
	case r.KeySlot.State == platform.SlotQueued && f.Key != nil:
		wait = f.Key.forecast(f.Key.Position, r, LimitKey, f.Limiter, f.Now).Then(f.Pool.joined(r, f))
	case r.KeySlot.State == "" && f.Key.applies() && f.Key.Held+f.Key.Queued >= f.Key.Limit: // the run is planned
		wait = f.Key.forecast(f.Key.Ahead, r, LimitKey, f.Limiter, f.Now).Then(f.Pool.joined(r, f))
	case r.AwaitsJobSlot() && f.Job != nil:
		wait = f.Job.forecast(f.Job.Position, r, LimitJob, f.Limiter, f.Now).Then(f.Pool.joined(r, f))
	case r.Queued():
		wait = f.Pool.forecast(max(f.Pool.Position, 0), r, LimitPool, f.Limiter, f.Now)
	case r.Slot.State == platform.SlotHeld:
		from, wait = later(r.Attempt.StartAt, r.Attempt.BackoffUntil), f.Pool.Measures.Started(ClassOf(r))
	default:
		from, wait = later(r.RetryAt, r.ScheduledAt), f.Pool.joined(r, f)
		if r.Acting != nil && r.Acting.Waits { // after its delay, retry_later joins the job's queue
			from = time.Time{}
			var job Range
			if f.Job.applies() {
				job = f.Job.forecast(f.Job.Ahead, r, LimitJob, f.Limiter, f.Now)
			}
			wait = job.NotBefore(r.Acting.NotBefore.Sub(f.Now)).Then(wait)
		}
	}
	begin := later(from, f.Now)
	x.Expected = &Expected{P50: begin.Add(wait.P50), P90: begin.Add(wait.P90), Measured: wait.Measured}
}

// joined returns when a run is expected to start if it requests a slot of the pool now.
func (q *Queue) joined(r run.Run, f Facts) Range {
	return q.forecast(q.Ahead, r, LimitPool, f.Limiter, f.Now)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
