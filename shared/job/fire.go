package job

import (
	"math"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/run"
)

const (
	// OnTime is how late a firing may be committed, after its jitter, and still be on
	// time: timers promise the minute, and a lost wake-up is found in a few. A later
	// firing was missed.
	OnTime = 5 * time.Minute
	// MaxCatchUp is how many missed firings a job catches up at once: the latest ones.
	MaxCatchUp = 100
)

// Firing is a time at which the schedule of a job fires, or a span of such times that
// are skipped.
type Firing struct {
	// At is the nominal time, the first one of a span.
	At time.Time
	// Trigger is TriggerSchedule, or TriggerCatchUp for a firing that was missed.
	Trigger run.Trigger
	// Skipped is nil for a firing that is run.
	Skipped *run.Missed
}

// Fire returns the firings that are due at now, the oldest first and at most most, and
// the job with its next firing, which may be due too. Without a due one it returns the
// job unchanged. done are times that need no firing because their runs exist.
//
// A job that does not catch up fires for each time that is due and not missed. A job
// that catches up also fires for the missed times of its catchUpWindow, but for the
// last MaxCatchUp ones at most; it marks them, and those that are committed after the
// following time. Other missed times are skipped, as one firing for each reason.
func (j Job) Fire(now time.Time, most int, done ...time.Time) (after Job, due []Firing) {
	if !j.Due(now) {
		return j, nil
	}
	schedule, ok := j.Definition.schedule()
	if !ok {
		return j.scheduled(now), nil
	}
	punctual := now.Add(-j.Delay()) // the latest time that is due
	w := walk{schedule: schedule, since: j.Since, at: j.NextAt, end: punctual.Add(1), done: done}
	switch window, catchesUp := j.Definition.window(), j.Definition.CatchesUp(); {
	case !catchesUp:
		due = w.skip(due, punctual.Add(-OnTime), math.MaxInt, run.SkipMissed)
	case window > 0:
		due = w.skip(due, now.Add(-window), math.MaxInt, run.SkipWindow)
		fallthrough
	default:
		all := w
		if n := all.pass(w.end, math.MaxInt); n > MaxCatchUp {
			due = w.skip(due, w.end, n-MaxCatchUp, run.SkipLimit)
		}
	}
	for len(due) < most && w.before(w.end) {
		f := Firing{At: w.at, Trigger: run.TriggerSchedule}
		w.pass(w.end, 1)
		missed := w.before(w.end) || f.At.Before(punctual.Add(-OnTime)) || !f.At.After(j.ResumedAt)
		if missed && j.Definition.CatchesUp() {
			f.Trigger = run.TriggerCatchUp
		}
		if !slices.ContainsFunc(done, f.At.Equal) {
			due = append(due, f)
		}
	}
	j.NextAt = w.at
	return j.awaited(), due
}

// Upcoming returns how many firings are due until a time, at most most.
func (j Job) Upcoming(until time.Time, most int) int {
	schedule, ok := j.Definition.schedule()
	if !ok || !j.Due(until) {
		return 0
	}
	w := walk{schedule: schedule, since: j.Since, at: j.NextAt}
	return w.pass(until.Add(-j.Delay()).Add(1), most)
}

// window is how late a missed firing may be caught up; 0 means no limit.
func (d Definition) window() time.Duration {
	if d.Constraints == nil {
		return 0
	}
	return d.Constraints.CatchUpWindow.Value()
}

// walk passes over the times of a schedule. at is the first one ahead, zero if none
// follows, and last the one before it; those before end are due.
type walk struct {
	schedule Schedule
	since    time.Time
	last, at time.Time
	end      time.Time
	done     []time.Time
}

func (w *walk) before(t time.Time) bool { return !w.at.IsZero() && w.at.Before(t) }

// pass passes over at most most times before until and returns their number.
func (w *walk) pass(until time.Time, most int) (n int) {
	for n < most && w.before(until) {
		steps := 1
		if every := w.schedule.every; every > 0 { // an outage may have missed millions
			steps = min(most-n, int((until.Sub(w.at)-1)/every)+1)
			w.at = w.at.Add(time.Duration(steps-1) * every)
		}
		n += steps
		next, ok := w.schedule.Next(w.at, w.since)
		if !ok {
			next = time.Time{}
		}
		w.last, w.at = w.at, next
	}
	return n
}

// skip appends the firing of at most most due times before until to due.
func (w *walk) skip(due []Firing, until time.Time, most int, why run.SkipReason) []Firing {
	if until.After(w.end) {
		until = w.end
	}
	for most > 0 && w.before(until) && slices.ContainsFunc(w.done, w.at.Equal) {
		w.pass(until, 1)
		most--
	}
	first := w.at
	n := w.pass(until, most)
	if n == 0 {
		return due
	}
	return append(due, Firing{At: first, Trigger: run.TriggerSchedule, Skipped: &run.Missed{Reason: why, Count: n, Until: w.last}})
}
