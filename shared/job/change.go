package job

import (
	"hash/fnv"
	"time"
)

// Create returns the record of a new job. Its schedule counts from now.
func Create(tenant string, d Definition, by string, now time.Time) Job {
	j := Job{
		Tenant: tenant, ID: d.ID, Version: 1, Definition: d,
		CreatedAt: now, UpdatedAt: now, UpdatedBy: by, Since: now.Truncate(time.Second),
	}
	return j.scheduled(now)
}

// After returns a new job whose versions follow that of a deleted one.
func (j Job) After(deleted int64) Job {
	if deleted > 0 {
		j.Version, j.FirstVersion = deleted+1, deleted+1
	}
	return j
}

// Made reports whether a run with a version is of the job, and not of a deleted one with
// its id.
func (j Job) Made(version int64) bool { return version >= j.FirstVersion }

// Apply returns the job with a changed definition. A changed schedule counts from now
// and never fires for the past. A change that leaves the schedule alone keeps the next
// firing.
func (j Job) Apply(d Definition, by string, now time.Time) Job {
	was := j.Definition
	j.Definition, j.Version, j.UpdatedAt, j.UpdatedBy = d, j.Version+1, now, by
	if was.Schedule != d.Schedule || was.TimeZone != d.TimeZone {
		j.Since = now.Truncate(time.Second)
		return j.scheduled(now)
	}
	return j.awaited()
}

// Pause returns the job without a wake-up. It keeps NextAt, after which firings are
// missed until it is resumed.
func (j Job) Pause(now time.Time) Job {
	if !j.Paused {
		j.Paused, j.PausedAt = true, now
	}
	return j.awaited()
}

// Resume returns the job with its wake-up. The times that passed meanwhile are firings
// only if the job catches up.
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

// Clear returns the job without the results of the runs that have ended by now.
func (j Job) Clear(now time.Time) Job {
	j.ClearedAt = now
	return j
}

// Due reports whether a firing of the job is to be committed by now.
func (j Job) Due(now time.Time) bool { return !j.WakeAt.IsZero() && !now.Before(j.WakeAt) }

// scheduled sets the first firing after a time. A schedule that cannot be parsed any
// more, such as one with a time zone that was removed, does not fire.
func (j Job) scheduled(after time.Time) Job {
	j.NextAt = time.Time{}
	if s, ok := j.Definition.schedule(); ok {
		if next, ok := s.Next(after, j.Since); ok {
			j.NextAt = next
		}
	}
	return j.awaited()
}

// awaited sets the wake-up for the next firing.
func (j Job) awaited() Job {
	j.WakeAt = time.Time{}
	if !j.Paused && !j.NextAt.IsZero() {
		j.WakeAt = j.NextAt.Add(j.Delay())
	}
	return j
}

// Delay is how much later than its nominal time each firing of the job is committed:
// a part of its jitter, in whole milliseconds, that depends on tenant and id alone.
func (j Job) Delay() time.Duration {
	jitter := j.Definition.Jitter.Value() / time.Millisecond
	if jitter <= 0 {
		return 0
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(j.Tenant + "/" + j.ID))
	return time.Duration(mixed(sum.Sum64())%uint64(jitter)) * time.Millisecond //nolint:gosec // less than the jitter
}

// mixed spreads the bits of a hash, as the finalizer of MurmurHash3 does: FNV alone
// gives ids that differ in their last characters similar values.
func mixed(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// CatchesUp reports whether all firings that were missed are made up for, also those of a
// pause.
func (d Definition) CatchesUp() bool { return d.Constraints != nil && given(d.Constraints.CatchUp) }

// schedule returns the schedule; ok is false without a valid one.
func (d Definition) schedule() (s Schedule, ok bool) {
	if d.Schedule == "" {
		return Schedule{}, false
	}
	s, err := ParseSchedule(d.Schedule, d.TimeZone)
	return s, err == nil
}
