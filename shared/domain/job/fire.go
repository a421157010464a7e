package job

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

const (
	// DefaultDeadline is how late a firing may start, after its jitter.
	DefaultDeadline = 5 * time.Minute
	// MaxCatchUp is the maximum number of missed firings that a job catches up at once: the
	// latest ones.
	MaxCatchUp = 100
)

// Firing is a time at which the schedule of a job fires, or a span of such times that are
// skipped.
type Firing struct {
	// At is the nominal time; the first one of a span.
	At time.Time
	// Trigger is TriggerSchedule, or TriggerCatchUp for a missed firing.
	Trigger run.Trigger
	// Skipped describes the skip; nil for a firing that starts a run.
	Skipped *run.Missed
	// InTurn: the run waits for a slot of the job while runs of earlier times hold the slots.
	InTurn bool
}

// Fire returns the firings that are due at now, oldest first, at most most. It also returns the
// job with its next firing, which may be due too. If no firing is due, it returns the job
// unchanged. done are times whose runs already exist; they need no firing. precision is how
// late a wake-up may be without a failure.
//
// A time is missed if it is earlier than precision allows and a later time is due too. It is
// also missed if it is earlier than the starting deadline allows. The definition's Missed says
// which missed times start. The others are skipped, as one firing for each reason. MissedAll
// starts at most the last MaxCatchUp times.
func (j Job) Fire(now time.Time, precision time.Duration, most int, done ...time.Time) (after Job, due []Firing) {
	if !j.Due(now) {
		return j, nil
	}
	schedule, ok := j.Definition.Times()
	if !ok {
		return j.scheduled(now), nil
	}
	punctual := now.Add(-j.Delay()) // the latest nominal time that is due
	w := j.cursor(schedule)
	w.end, w.done = punctual.Add(1), done
	all := w
	n := all.advance(w.end, math.MaxInt)
	newest, on := all.last, punctual.Add(-precision)
	recent := earlier(newest, on) // earlier times were missed
	oldest, late := j.Definition.oldest(now, punctual)
	rule := j.Definition.missed()
	switch {
	case newest.Before(oldest):
		due = w.skip(due, w.end, math.MaxInt, late)
	case rule == MissedLatest:
		due = w.skip(due, later(oldest, recent), math.MaxInt, run.SkipMissed)
	case rule == MissedNone && n > 1:
		due = w.skip(due, later(oldest, on), math.MaxInt, run.SkipMissed)
	case rule == MissedAll:
		due = w.skip(due, oldest, math.MaxInt, late)
		left := w
		if n := left.advance(w.end, math.MaxInt); n > MaxCatchUp {
			due = w.skip(due, w.end, n-MaxCatchUp, run.SkipLimit)
		}
		if w.before(recent) {
			j.InTurn = newest
		}
	}
	for len(due) < most && w.before(w.end) {
		f := Firing{At: w.at, Trigger: run.TriggerSchedule, InTurn: !w.at.After(j.InTurn)}
		w.advance(w.end, 1)
		missed := f.At.Before(recent) || f.At.Before(punctual.Add(-DefaultDeadline)) || !f.At.After(j.ResumedAt)
		if missed && rule == MissedAll {
			f.Trigger = run.TriggerCatchUp
		}
		if !slices.ContainsFunc(done, f.At.Equal) {
			due = append(due, f)
		}
	}
	j.NextAt = w.at
	return j.awaited(), due
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// missed returns the rule for missed times.
func (d Definition) missed() Missed {
	if d.CatchesUp() {
		return MissedAll
	}
	return cmp.Or(d.Missed, MissedLatest)
}

// oldest returns the oldest time that may start at now, and why older times are skipped.
// punctual is the latest time that is due. A zero oldest means no limit.
func (d Definition) oldest(now, punctual time.Time) (oldest time.Time, why run.SkipReason) {
	if !d.CatchesUp() {
		why = run.SkipMissed
		if d.missed() == MissedAll {
			why = run.SkipDeadline
		}
		return punctual.Add(-cmp.Or(d.StartingDeadline.Value(), DefaultDeadline)), why
	}
	if window := d.window(); window > 0 {
		oldest = now.Add(-window)
	}
	return oldest, run.SkipWindow
}

// Upcoming returns how many firings are due by the time until, at most most.
func (j Job) Upcoming(until time.Time, most int) int {
	schedule, ok := j.Definition.Times()
	if !ok || !j.Due(until) {
		return 0
	}
	w := j.cursor(schedule)
	return w.advance(until.Add(-j.Delay()).Add(1), most)
}

// window returns how late a missed firing may be caught up; 0 means no limit.
func (d Definition) window() time.Duration {
	if d.Constraints == nil {
		return 0
	}
	return d.Constraints.CatchUpWindow.Value()
}

// scheduleCursor iterates over the times of a schedule. at is the next time, zero at the end;
// last is the time before it. Times before end are due.
type scheduleCursor struct {
	schedule Schedule
	since    time.Time
	last, at time.Time
	end      time.Time
	done     []time.Time
}

// cursor returns a cursor at the next firing. It drops a stored time after the end of the schedule:
// the end may be a date in a zone, and a new time zone database may move it.
func (j Job) cursor(schedule Schedule) scheduleCursor {
	w := scheduleCursor{schedule: schedule, since: j.Since, at: j.NextAt}
	if !schedule.end.IsZero() && !w.at.Before(schedule.end) {
		w.at = time.Time{}
	}
	return w
}

func (w *scheduleCursor) before(t time.Time) bool { return !w.at.IsZero() && w.at.Before(t) }

// advance advances over at most most times before until and returns their number.
func (w *scheduleCursor) advance(until time.Time, most int) (n int) {
	if end := w.schedule.end; !end.IsZero() {
		until = earlier(until, end)
	}
	for n < most && w.before(until) {
		steps := 1
		if every := w.schedule.interval(); every > 0 { // an outage can miss millions of times
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

// skip advances over at most most due times before until, and appends a skipped firing for them
// to due.
func (w *scheduleCursor) skip(due []Firing, until time.Time, most int, why run.SkipReason) []Firing {
	if until.After(w.end) {
		until = w.end
	}
	for most > 0 && w.before(until) && slices.ContainsFunc(w.done, w.at.Equal) {
		w.advance(until, 1)
		most--
	}
	first := w.at
	n := w.advance(until, most)
	if n == 0 {
		return due
	}
	return append(due, Firing{At: first, Trigger: run.TriggerSchedule, Skipped: &run.Missed{Reason: why, Count: n, Until: w.last}})
}
