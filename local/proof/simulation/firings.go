package simulation

import (
	"context"
	"errors"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// nominal describes the times of a schedule: an interval, a single time, the minutes of each hour
// that equal minute or are multiples of step, or a list. offset is the schedule's offset from UTC in
// minutes.
type nominal struct {
	list         []time.Time
	every        time.Duration
	at           time.Time
	step, minute int
	offset       int
}

// next returns the first time of the schedule after the given time. since is the start of the
// schedule. It returns false if no time follows.
func (n nominal) next(after, since time.Time) (time.Time, bool) {
	if after.Before(since) {
		after = since
	}
	switch {
	case n.list != nil:
		for _, t := range n.list {
			if t.After(after) {
				return t, true
			}
		}
		return time.Time{}, false
	case n.every > 0:
		return after.Add(n.every - after.Sub(since)%n.every), true
	case n.step > 0:
		for t := after.Truncate(time.Minute).Add(time.Minute); ; t = t.Add(time.Minute) {
			if minute := (int(t.Unix()/60) + n.offset) % 60; (minute-n.minute)%n.step == 0 {
				return t, true
			}
		}
	}
	return n.at, n.at.After(after)
}

// between counts the times from first to last, inclusive.
func (n nominal) between(first, last, since time.Time) (count int) {
	for t, ok := n.next(first.Add(-1), since); ok && !t.After(last); t, ok = n.next(t, since) {
		count++
	}
	return count
}

// jobModel is the observed state of a job.
type jobModel struct {
	id string
	// record is nil if the job does not exist.
	record *job.Job
	// definitions are the definitions of the job's versions, also by the job's creation time.
	definitions map[jobVersion]job.Definition
	// epoch is the current schedule; nil without a schedule.
	epoch *epoch
	// recorded maps times, in seconds, to the run that records them.
	recorded map[int64]*run.Run
	deleted  bool
	// limits are the changes of maxConcurrentRuns. uses are the changes of the number of used
	// slots. idleSince is the time since which a slot is free while a run waits.
	limits    []limitChange
	uses      []slotUse
	idleSince time.Time
	// clearedAt is when the last request to clear the results was sent.
	clearedAt time.Time
}

type jobVersion struct {
	createdAt int64
	version   int64
}

// epoch is the lifetime of one schedule of a job.
type epoch struct {
	times nominal
	since time.Time
	// next is the first time without a record; zero if no time follows. dueSince is the
	// earliest start of the wait for it.
	next, dueSince time.Time
}

// maxCatchUp limits the missed firings that a job catches up at once.
const maxCatchUp = 100

// TouchJob implements harness.Watch. It records that a job may have changed.
func (w *world) TouchJob(id string) { w.touchedJobs[id] = true }

// refreshJobs reads the jobs that may have changed.
func (w *world) refreshJobs() {
	for _, id := range w.jobIDs {
		if !w.touchedJobs[id] || w.Process.Crashed {
			continue
		}
		delete(w.touchedJobs, id)
		now, err := w.Process.Store.LoadJob(context.Background(), harness.Client.Tenant, id)
		switch {
		case errors.Is(err, port.ErrNotFound):
			w.jobChanged(id, nil)
		case err != nil:
			w.Fail("cannot read job %s: %v", id, err)
		default:
			w.jobChanged(id, &now)
		}
	}
}

// jobChanged updates the model after a change of a job's record.
func (w *world) jobChanged(id string, now *job.Job) {
	m := w.jobs[id]
	if m == nil {
		m = &jobModel{id: id, definitions: map[jobVersion]job.Definition{}, recorded: map[int64]*run.Run{}}
		w.jobs[id] = m
	}
	before := m.record
	m.record = now
	w.noteLimit(m)
	if now == nil {
		m.deleted = m.deleted || before != nil
		m.epoch = nil
		return
	}
	if before != nil && before.CreatedAt.Equal(now.CreatedAt) && now.Revision < before.Revision {
		w.Fail("%s went back from revision %d to %d", id, before.Revision, now.Revision)
	}
	m.definitions[jobVersion{now.CreatedAt.UnixNano(), now.Version}] = now.Definition
	same := before != nil && before.CreatedAt.Equal(now.CreatedAt) && before.Definition.ScheduleText() == now.Definition.ScheduleText() &&
		before.Definition.TimeZone == now.Definition.TimeZone && before.Since.Equal(now.Since)
	if !same {
		if before != nil && before.CreatedAt.Equal(now.CreatedAt) {
			w.checkAbandoned(m, before, now.UpdatedAt)
		}
		w.beginEpoch(m)
		return
	}
	if m.epoch == nil {
		return
	}
	if jitterOf(now.Definition) < jitterOf(before.Definition) {
		m.epoch.dueSince = w.Time.Now // the wake-up is scheduled again
	}
	if now.Paused && !before.Paused && !catchesUp(now.Definition) {
		w.checkAbandoned(m, before, now.PausedAt)
	}
	if !now.ResumedAt.Equal(before.ResumedAt) {
		m.epoch.dueSince = w.Time.Now
		if !catchesUp(now.Definition) { // times during the pause are no firings
			m.epoch.pass(now.ResumedAt)
		}
	}
}

func catchesUp(d job.Definition) bool {
	return d.Constraints != nil && d.Constraints.CatchUp != nil && *d.Constraints.CatchUp
}

// jitterOf returns the largest random delay of a firing.
func jitterOf(d job.Definition) time.Duration {
	jitter, _ := time.ParseDuration(string(d.Jitter))
	return jitter
}

// windowOf returns the time within which a firing may be caught up; 0 means no limit.
func windowOf(d job.Definition) time.Duration {
	if d.Constraints == nil {
		return 0
	}
	window, _ := time.ParseDuration(string(d.Constraints.CatchUpWindow))
	return window
}

// beginEpoch starts the model of the schedule in a job's record.
func (w *world) beginEpoch(m *jobModel) {
	j := m.record
	m.epoch = nil
	times, known := w.schedules[scheduleKey{j.Definition.ScheduleText(), j.Definition.TimeZone}]
	if !known {
		if j.Definition.Scheduled() {
			w.Fail("%s has the schedule %q, which no client has sent", j.ID, j.Definition.ScheduleText())
		}
		return
	}
	if j.Since.After(j.UpdatedAt) || j.Since.Before(j.UpdatedAt.Add(-time.Second)) {
		w.Fail("the schedule of %s counts from %s, want its change at %s", j.ID, j.Since, j.UpdatedAt)
	}
	m.epoch = &epoch{times: times, since: j.Since, dueSince: w.Time.Now}
	m.epoch.pass(j.Since)
}

// pass advances next to the first time after until.
func (e *epoch) pass(until time.Time) {
	if !e.next.IsZero() && e.next.After(until) {
		return
	}
	next, ok := e.times.next(until, e.since)
	if !ok {
		next = time.Time{}
	}
	e.next = next
}

// skipRecorded advances next past the times that have a record.
func (m *jobModel) skipRecorded() {
	for e := m.epoch; e != nil && !e.next.IsZero() && m.recorded[e.next.Unix()] != nil; {
		e.pass(e.next)
	}
}

// checkAbandoned checks that a change of the schedule, or a pause, drops no time that was due
// before it.
func (w *world) checkAbandoned(m *jobModel, before *job.Job, at time.Time) {
	m.skipRecorded()
	e := m.epoch
	if e == nil || e.next.IsZero() || before.Paused {
		return
	}
	slack := 2 * w.Plan.Skew
	if w.Plan.SlowCommits > 0 { // times that become due during the commit
		slack += 10 * harness.Slowest
	}
	if due := e.next.Add(jitterOf(before.Definition)); due.Before(at.Add(-slack)) {
		w.abandoned = append(w.abandoned, abandonedTime{m, e.next})
	}
}

// abandonedTime is a time that must be recorded by the end of the event.
type abandonedTime struct {
	m  *jobModel
	at time.Time
}

// firingOf returns the scheduled time of a run that its job's schedule may have created. It
// returns false for other runs.
func firingOf(r *run.Run) (at time.Time, ok bool) {
	return r.ScheduledAt, r.JobID != "" && r.ID != r.TaskID && r.Trigger != run.TriggerAfter && r.Trigger != run.TriggerEvent
}

// checkFirings adds the new firings to the model, and checks that each due time has one record.
func (w *world) checkFirings(changed []*run.Run) {
	for _, r := range changed {
		if _, ok := firingOf(r); ok && w.Last[r.ID] == nil {
			w.recordFiring(r)
		}
	}
	for _, a := range w.abandoned {
		if a.m.recorded[a.at.Unix()] == nil {
			w.Fail("%s lost the time %s, which was due before its schedule changed or paused", a.m.id, a.at.Sub(harness.Start))
		}
	}
	w.abandoned = w.abandoned[:0]
}

// recordFiring adds the times that a new run records.
func (w *world) recordFiring(r *run.Run) {
	m := w.jobs[r.JobID]
	if m == nil {
		w.Fail("%s is a run of a job that was never seen", r.ID)
		return
	}
	if r.Child != nil {
		return // see checkFanOut
	}
	last := r.ScheduledAt
	if r.Missed != nil {
		last = r.Missed.Until
	}
	e := m.epoch
	inEpoch := e != nil && r.ScheduledAt.After(e.since)
	for at, ok := r.ScheduledAt, true; ok && !at.After(last); {
		if other := m.recorded[at.Unix()]; other != nil && !requestedRun(other) && !requestedRun(r) && w.Plan.Skew == 0 {
			w.Fail("%s and %s are the records of one time", other.ID, r.ID)
		}
		m.recorded[at.Unix()] = r
		if !inEpoch {
			break
		}
		at, ok = e.times.next(at, e.since)
	}
	if requestedRun(r) {
		return
	}
	w.checkFiring(m, r)
	m.skipRecorded()
	if inEpoch && !e.next.IsZero() && e.next.Before(r.ScheduledAt) {
		w.Fail("%s fired for %s, and the earlier time %s has no record", r.JobID, r.ScheduledAt.Sub(harness.Start), e.next.Sub(harness.Start))
	}
}

// checkDueJobs checks that each due time is recorded in time.
func (w *world) checkDueJobs() {
	for _, id := range w.jobIDs {
		m := w.jobs[id]
		if m == nil || m.record == nil || m.epoch == nil || m.record.Paused {
			continue
		}
		m.skipRecorded()
		if m.epoch.next.IsZero() {
			continue
		}
		due := m.epoch.next.Add(jitterOf(m.record.Definition))
		if due.Before(m.epoch.dueSince) {
			due = m.epoch.dueSince
		}
		kind, mean := harness.Promised+5*time.Second, 2*w.Patience()
		if w.Plan.Skew > 0 || !w.Home.SurvivesCrash() && w.Starts > 1 || w.Plan.LostWakeUps > 0 {
			kind += 2*time.Minute + 2*w.Config.SweepInterval
		}
		if late := w.Overdue(due, kind, mean); late > 0 {
			w.Fail("%s lost the time %s: it has no record %s after its limit", id, m.epoch.next.Sub(harness.Start), late)
		}
	}
}

// jobsQuiet reports whether no schedule will fire again.
func (w *world) jobsQuiet() bool {
	if w.ownersDone < len(w.jobIDs) {
		return false
	}
	for _, id := range w.jobIDs {
		if m := w.jobs[id]; m != nil && m.record != nil && m.epoch != nil && !m.record.Paused && !m.epoch.next.IsZero() {
			return false
		}
	}
	return true
}
