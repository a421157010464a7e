package job

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/hash"
)

// Create returns the record of a new job. Its schedule counts from now.
func Create(tenant string, d Definition, by string, now time.Time) Job {
	j := Job{
		Tenant: tenant, ID: d.ID, Version: 1, Definition: d,
		CreatedAt: now, UpdatedAt: now, UpdatedBy: by, Since: now.Truncate(time.Second),
	}
	return j.scheduled(now)
}

// After returns the new job with a version after deleted, the last version of the deleted job with
// its id.
func (j Job) After(deleted int64) Job {
	if deleted > 0 {
		j.Version, j.FirstVersion = deleted+1, deleted+1
	}
	return j
}

// OwnsVersion reports whether the version is one of this job, and not of a deleted job with the
// same id.
func (j Job) OwnsVersion(version int64) bool { return version >= j.FirstVersion }

// Apply returns the job with a changed definition. A changed schedule counts from now and never
// fires for past times. If the schedule is unchanged, the next firing stays.
func (j Job) Apply(d Definition, by string, now time.Time) Job {
	was := j.Definition
	j.Definition, j.Version, j.UpdatedAt, j.UpdatedBy = d, j.Version+1, now, by
	if !was.sameTimes(d) {
		j.Since = now.Truncate(time.Second)
		return j.scheduled(now)
	}
	return j.awaited()
}

// Pause returns the job without a wake-up. It keeps NextAt, so the firings from then until
// Resume are missed.
func (j Job) Pause(now time.Time) Job {
	if !j.Paused {
		j.Paused, j.PausedAt = true, now
	}
	return j.awaited()
}

// Resume returns the job with its wake-up. Times that passed during the pause fire only if the
// job catches up.
func (j Job) Resume(now time.Time) Job {
	if !j.Paused {
		return j
	}
	j.Paused, j.PausedAt, j.ResumedAt = false, time.Time{}, now
	if j.Definition.CatchesUp() {
		return j.awaited()
	}
	return j.scheduled(now)
}

// Clear returns the job with ClearedAt set to now.
func (j Job) Clear(now time.Time) Job {
	j.ClearedAt = now
	return j
}

// Due reports whether a firing of the job must be committed by now.
func (j Job) Due(now time.Time) bool { return !j.WakeAt.IsZero() && !now.Before(j.WakeAt) }

// scheduled sets NextAt to the first time of the schedule after a time. A schedule that can no
// longer be parsed, for example because its time zone was removed, does not fire.
func (j Job) scheduled(after time.Time) Job {
	j.NextAt = time.Time{}
	if s, ok := j.Definition.Times(); ok {
		if next, ok := s.Next(after, j.Since); ok {
			j.NextAt = next
		}
	}
	return j.awaited()
}

// WakeSlack is the time after its wake-up at which a job is overdue: timers are precise to the
// minute only.
const WakeSlack = 90 * time.Second

// awaited sets WakeAt from NextAt.
func (j Job) awaited() Job {
	j.WakeAt = time.Time{}
	if !j.Paused && !j.NextAt.IsZero() {
		j.WakeAt = j.NextAt.Add(j.Delay())
	}
	return j
}

// Delay returns how much later than its nominal time each firing of the job is committed: a
// part of its jitter, in whole milliseconds, that depends only on tenant and id.
func (j Job) Delay() time.Duration {
	jitter := j.Definition.Jitter.Value() / time.Millisecond
	if jitter <= 0 {
		return 0
	}
	return time.Duration(hash.Of(j.Tenant+"/"+j.ID)%uint64(jitter)) * time.Millisecond //nolint:gosec // less than the jitter
}

// CatchesUp reports whether all missed firings start later, including those during a pause.
func (d Definition) CatchesUp() bool { return d.Constraints != nil && given(d.Constraints.CatchUp) }

// Scheduled reports whether the job has a schedule.
func (d Definition) Scheduled() bool { return d.Schedule != "" || len(d.Schedules) > 0 }

// ScheduleText returns the expressions of the schedule in one text, separated by "; ".
func (d Definition) ScheduleText() string {
	if d.Schedule != "" {
		return d.Schedule
	}
	return strings.Join(d.Schedules, "; ")
}

// expressions returns the expressions of the schedule with their fields.
func (d Definition) expressions() iter.Seq2[string, string] {
	return func(yield func(field, text string) bool) {
		if d.Schedule != "" && !yield("schedule", d.Schedule) {
			return
		}
		for i, text := range d.Schedules {
			if !yield(fmt.Sprintf("schedules.%d", i), text) {
				return
			}
		}
	}
}

// Times returns the parsed schedule; ok is false without a valid one.
func (d Definition) Times() (s Schedule, ok bool) {
	zone, err := parseZone(d.TimeZone)
	if err != nil {
		return Schedule{}, false
	}
	dates := calendarOf(d.Calendars)
	for _, text := range d.expressions() {
		parsed, err := parseTimes(text, zone)
		if err != nil {
			return Schedule{}, false
		}
		parsed.calendar = dates
		s.times = append(s.times, parsed)
	}
	start, startErr := parseBound(d.StartAt, zone)
	end, endErr := parseBound(d.EndAt, zone)
	s.start, s.end = start, end
	return s, len(s.times) > 0 && startErr == nil && endErr == nil
}

// parseBound parses a time of RFC 3339 or a date in a zone; the zero time of an empty text.
func parseBound(text string, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if date, err := time.ParseInLocation(time.DateOnly, text, zone); err == nil {
		return date.UTC(), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	return at.UTC(), err
}

// sameTimes reports whether two definitions have the same schedule.
func (d Definition) sameTimes(other Definition) bool {
	return d.Schedule == other.Schedule && d.TimeZone == other.TimeZone && slices.Equal(d.Schedules, other.Schedules) &&
		d.StartAt == other.StartAt && d.EndAt == other.EndAt && reflect.DeepEqual(d.Calendars, other.Calendars)
}
