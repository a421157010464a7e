package sensor

import (
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/base/retry"
)

// State is what a polled sensor knows between two polls.
type State struct {
	// StoredAt is the time of the last change of the job that named a place. A record without a
	// job is removed AbandonedAfter that time.
	StoredAt time.Time `json:"storedAt"`
	// Next is the place that the change named, at StoredAt.
	Next string `json:"next,omitempty"`

	// Place and JobCreatedAt say whose items are known. If they differ from those of the job, the
	// sensor begins again.
	Place        string    `json:"place,omitempty"`
	JobCreatedAt time.Time `json:"jobCreatedAt,omitzero"`
	// Begins: no poll has listed the whole bucket yet. Objects modified by Since, a time of
	// Sortie's clock, existed before the sensor.
	Begins bool      `json:"begins,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// After is the key after which the next poll lists; empty means from the start.
	After string `json:"after,omitempty"`

	// PolledAt is the time of the last complete poll, Known the number of objects that it knew.
	PolledAt time.Time `json:"polledAt,omitzero"`
	Known    int       `json:"known,omitempty"`
	// Failures counts the polls that have failed since the last complete one, Failure is the reason
	// of the last, and FailedAt the time of the first.
	Failures int       `json:"failures,omitempty"`
	Failure  string    `json:"failure,omitempty"`
	FailedAt time.Time `json:"failedAt,omitzero"`
	// Refused is the last item that can have no run, and why; empty without one.
	Refused   string    `json:"refused,omitempty"`
	RefusedAt time.Time `json:"refusedAt,omitzero"`
}

// AbandonedAfter is how long the record of a sensor is kept without its job. It is longer than a
// request that stores a job after the record.
const AbandonedAfter = time.Hour

// Stored returns the state after a change of the job that names a place, which is stored before the
// job.
func (s State) Stored(place string, now time.Time) State {
	s.StoredAt, s.Next = now, place
	return s
}

// Abandoned reports whether the record of a sensor whose job does not exist can be removed.
func (s State) Abandoned(now time.Time) bool { return now.Sub(s.StoredAt) >= AbandonedAfter }

// Of returns the state for the place of a job. began reports that the sensor begins there, without
// known items. Of a new job it begins when the job was created, otherwise with the change of the
// place; changedAt is the time of the last change of the job.
func (s State) Of(place string, jobCreatedAt, changedAt time.Time) (of State, began bool) {
	if s.Place == place && s.JobCreatedAt.Equal(jobCreatedAt) {
		return s, false
	}
	since := changedAt
	switch {
	case !s.JobCreatedAt.Equal(jobCreatedAt):
		since = jobCreatedAt
	case s.Next == place:
		since = s.StoredAt
	}
	return State{StoredAt: s.StoredAt, Next: s.Next, Place: place, JobCreatedAt: jobCreatedAt, Begins: true, Since: since}, true
}

// Old reports whether an object existed before the sensor, so that it starts no run. skew is how
// much the clock of the store is ahead. A store has whole seconds: an object of the second in which
// the sensor began is new.
func (s State) Old(o Object, skew time.Duration) bool {
	return s.Begins && o.ModifiedAt.Before(s.Since.Add(skew).Truncate(time.Second))
}

// pauses delay the polls after failures.
var pauses = retry.Backoff{First: DefaultEvery, Most: 10 * time.Minute, Multiplier: 2}

// Failed returns the state after a failed poll, and when the next one is due. After keeps its value,
// so that a poll that fails in the middle continues there.
func (s State) Failed(reason string, every time.Duration, now time.Time) (State, time.Time) {
	if s.Failures == 0 {
		s.FailedAt = now
	}
	s.Failures, s.Failure = s.Failures+1, limit.Cut(reason, limit.Message)
	return s, now.Add(max(every, pauses.Delay(s.Failures-1)))
}

// Waits returns the state after a poll that found more items than it may start. The next one is due
// at once.
func (s State) Waits() State {
	s.Failures, s.Failure, s.FailedAt = 0, "", time.Time{}
	return s
}

// Polled returns the state after a complete poll, and when the next one is due.
func (s State) Polled(known int, every time.Duration, now time.Time) (State, time.Time) {
	s = s.Waits()
	s.PolledAt, s.Known, s.After = now, known, ""
	return s, now.Add(every)
}

// Refuse returns the state after an item that can have no run.
func (s State) Refuse(item, reason string, now time.Time) State {
	s.Refused, s.RefusedAt = limit.Cut(item+": "+reason, limit.Message), now
	return s
}

// Kind is the kind of the records of polled sensors, whose ids are those of the jobs. KindSeen is
// that of the shards of their memory.
const (
	Kind     = "sensor"
	KindSeen = "sensor-seen"
)
