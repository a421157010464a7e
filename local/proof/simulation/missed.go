package simulation

import (
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// drawMissed draws the job's rule for missed times.
func (w *world) drawMissed(d, constraints map[string]any) {
	switch {
	case w.Chance(0.4):
		constraints["catchUp"] = true
	case w.Chance(0.7):
		d["missed"] = []job.Missed{job.MissedLatest, job.MissedAll, job.MissedNone}[w.Random.IntN(3)]
		if w.Chance(0.5) {
			d["startingDeadline"] = w.Between(90*time.Second, w.horizon+2*time.Minute).String()
		}
	}
}

// deadlineOf returns the time within which a firing may start, after its jitter.
func deadlineOf(d job.Definition) time.Duration {
	if deadline, err := time.ParseDuration(string(d.StartingDeadline)); err == nil {
		return deadline
	}
	return 5 * time.Minute
}

// checkFiring checks that a firing belongs to its schedule and follows the rule for missed
// times. It compares the stored record with the definition of the record's version.
func (w *world) checkFiring(m *jobModel, r *run.Run) {
	if m.record == nil {
		return
	}
	d, known := m.definitions[jobVersion{m.record.CreatedAt.UnixNano(), r.JobVersion}]
	times, scheduled := w.schedules[scheduleKey{d.ScheduleText(), d.TimeZone}]
	if !known || !scheduled || m.epoch == nil || d.ScheduleText() != m.record.Definition.ScheduleText() {
		return // the job has changed meanwhile
	}
	since, first := m.epoch.since, r.ScheduledAt
	if at, ok := times.next(first.Add(-1), since); !ok || !at.Equal(first) {
		w.Fail("%s fired for %s, which its schedule %q does not name", r.JobID, first.Sub(harness.Start), d.ScheduleText())
		return
	}
	late := r.FiredAt.Sub(first)
	if late < 0 {
		w.Fail("%s fired %s early", r.ID, -late)
	}
	if r.Missed == nil {
		w.checkStartedTime(d, times, since, r)
		return
	}
	last := r.Missed.Until
	if n := times.between(first, last, since); n != r.Missed.Count {
		w.Fail("%s counts %d skipped times, want %d", r.ID, r.Missed.Count, n)
	}
	w.checkSkippedTimes(d, times, since, r)
}

// checkStartedTime checks that a time that starts a run was not missed, or that its job catches
// it up. The delay of the firing is unknown, but less than the jitter.
func (w *world) checkStartedTime(d job.Definition, times nominal, since time.Time, r *run.Run) {
	late, jitter, window := r.FiredAt.Sub(r.ScheduledAt), jitterOf(d), windowOf(d)
	switch {
	case catchesUp(d) && window > 0 && late > window:
		w.Fail("%s fired %s late, want at most %s", r.ID, late, window)
	case catchesUp(d):
	case late > deadlineOf(d)+jitter:
		w.Fail("%s fired %s late, want it to be skipped", r.ID, late)
	case d.Missed != job.MissedAll && late > jitter+w.Precision():
		if next, ok := times.next(r.ScheduledAt, since); ok && !next.Add(jitter).After(r.FiredAt) {
			w.Fail("%s fired %s late with missed %q, and the later time %s was due", r.ID, late, d.Missed, next.Sub(harness.Start))
		}
	}
}

// checkSkippedTimes checks the reason in a record of skipped times.
func (w *world) checkSkippedTimes(d job.Definition, times nominal, since time.Time, r *run.Run) {
	last, window := r.Missed.Until, windowOf(d)
	late := r.FiredAt.Sub(last)
	next, ok := times.next(last, since)
	passed := ok && !next.After(r.FiredAt) // a later time may already be due
	switch reason := r.Missed.Reason; {
	case reason == run.SkipQueueFull && r.Missed.Count == 1 && w.QueueLimited():
	case reason == run.SkipMissed && !catchesUp(d) && d.Missed != job.MissedAll && (late > deadlineOf(d) || passed):
	case reason == run.SkipMissed && d.Missed == job.MissedNone && (r.Missed.Count > 1 || w.askedBefore(r, times, since)):
	case reason == run.SkipDeadline && !catchesUp(d) && d.Missed == job.MissedAll && late > deadlineOf(d):
	case reason == run.SkipWindow && catchesUp(d) && window > 0 && late > window:
	case reason == run.SkipLimit && (catchesUp(d) || d.Missed == job.MissedAll) && times.between(last, r.FiredAt, since) > maxCatchUp:
	default:
		w.Fail("%s was skipped (%s) %s after its time with missed %q, later time due: %t", r.ID, reason, late, d.Missed, passed)
	}
}

// askedBefore reports whether a manual run took the time right before the first one of the
// record. That time was due, too.
func (w *world) askedBefore(r *run.Run, times nominal, since time.Time) bool {
	for at, other := range w.jobs[r.JobID].recorded {
		if next, ok := times.next(time.Unix(at, 0).UTC(), since); ok && next.Equal(r.ScheduledAt) {
			return requestedRun(other)
		}
	}
	return false
}
