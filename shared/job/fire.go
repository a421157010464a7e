package job

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/run"
)

const (
	// DefaultDeadline is how late a firing may start, after its jitter.
	DefaultDeadline = 5 * time.Minute
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
	// InTurn: the run waits until those of earlier times leave it a slot of the job.
	InTurn bool
}

// Fire returns the firings that are due at now, the oldest first and at most most, and
// the job with its next firing, which may be due too. Without a due one it returns the
// job unchanged. done are times that need no firing because their runs exist. precision is
// how late a wake-up may be although nothing has failed.
//
// A time is missed if a later time is due too and it is further back than precision, or if
// it is further back than the starting deadline. The definition's Missed says which missed
// times start; the others are skipped, as one firing for each reason. MissedAll starts the
// last MaxCatchUp times at most.
func (j Job) Fire(now time.Time, precision time.Duration, most int, done ...time.Time) (after Job, due []Firing) {
	if !j.Due(now) {
		return j, nil
	}
	schedule, ok := j.Definition.schedule()
	if !ok {
		return j.scheduled(now), nil
	}
	punctual := now.Add(-j.Delay()) // the latest time that is due
	w := walk{schedule: schedule, since: j.Since, at: j.NextAt, end: punctual.Add(1), done: done}
	all := w
	n := all.pass(w.end, math.MaxInt)
	newest, on := all.last, punctual.Add(-precision)
	recent := earlier(newest, on) // times before it were missed
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
		if n := left.pass(w.end, math.MaxInt); n > MaxCatchUp {
			due = w.skip(due, w.end, n-MaxCatchUp, run.SkipLimit)
		}
		if w.before(recent) {
			j.InTurn = newest
		}
	}
	for len(due) < most && w.before(w.end) {
		f := Firing{At: w.at, Trigger: run.TriggerSchedule, InTurn: !w.at.After(j.InTurn)}
		w.pass(w.end, 1)
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

// missed returns the rule for times that were missed.
func (d Definition) missed() Missed {
	if d.CatchesUp() {
		return MissedAll
	}
	return cmp.Or(d.Missed, MissedLatest)
}

// oldest returns the oldest time that may start at now, and why older ones are skipped.
// punctual is the latest time that is due. The zero time is no limit.
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
