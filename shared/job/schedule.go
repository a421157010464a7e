package job

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // for hosts without a time zone database
)

// SyntaxError is a schedule that cannot be parsed.
type SyntaxError struct {
	// Position is the byte position of the problem in the schedule, from 1.
	Position int
	// Problem says what is wrong and what would be valid.
	Problem string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("position %d: %s", e.Position, e.Problem) }

func syntax(position int, format string, args ...any) *SyntaxError {
	return &SyntaxError{position, fmt.Sprintf(format, args...)}
}

// The range of an interval.
const (
	MinInterval = time.Second
	MaxInterval = 366 * 24 * time.Hour
)

// Schedule is the times at which a job fires: those of a cron expression in a time zone, at an
// interval, or once. The zero value never fires.
//
// In a zone with daylight saving time, an expression whose minute or hour field starts with '*'
// follows elapsed time: it fires at every local time that it selects, in both passes of a
// repeated hour, and not for times that a gap skips. Other expressions name times of day, and
// each fires once. A time that occurs twice fires at the first occurrence. A time in a gap
// fires at the first instant after the gap; several times in one gap are one firing. A day that
// a zone skips is such a gap.
type Schedule struct {
	cron  *cron
	zone  *time.Location
	every time.Duration
	at    time.Time
}

// ParseSchedule parses a schedule:
//
//	0 2 * * MON-FRI            minute, hour, day of month, month, day of week
//	@daily                     also @yearly, @annually, @monthly, @weekly, @midnight, @hourly
//	@every 90m                 an interval of whole seconds, 1 s to 366 days
//	@at 2027-03-01T08:00:00Z   once, at a time of RFC 3339
//
// A cron field is *, a value, a range, or a list of them. * and a range can have a step (*/15,
// 8-18/2). Months and days of the week have three-letter names; 0 and 7 are Sunday. If both day
// fields are restricted, a day matches if either field selects it; otherwise both must. A day
// field that starts with * is not restricted. zone is a name of the IANA time zone database,
// empty for UTC; only cron expressions use it. Errors about the schedule are of type
// *SyntaxError.
func ParseSchedule(text, zone string) (Schedule, error) {
	location, err := parseZone(zone)
	if err != nil {
		return Schedule{}, err
	}
	parts := words(text)
	if len(parts) == 0 {
		return Schedule{}, syntax(1, "empty schedule, want five cron fields, @daily, @every 1h or @at with a time")
	}
	if zone, ok := zoneOf(parts[0].text); ok {
		return Schedule{}, syntax(parts[0].at, "a time zone in the schedule, want the field timeZone%s", strings.TrimSuffix(": "+zone, ": "))
	}
	if !strings.HasPrefix(parts[0].text, "@") {
		c, err := parseCron(text)
		return Schedule{cron: &c, zone: location}, err
	}
	name := strings.ToLower(parts[0].text)
	if fields, ok := cronMacros[name]; ok {
		if len(parts) > 1 {
			return Schedule{}, syntax(parts[1].at, "%q after %s, want nothing", parts[1].text, name)
		}
		c, err := parseCron(fields)
		return Schedule{cron: &c, zone: location}, err
	}
	if name != "@every" && name != "@at" {
		return Schedule{}, syntax(parts[0].at, "unknown macro %q, want @yearly, @monthly, @weekly, @daily, @hourly, @every or @at", parts[0].text)
	}
	if len(parts) != 2 {
		return Schedule{}, syntax(parts[0].at, "%d words after %s, want 1", len(parts)-1, name)
	}
	if name == "@every" {
		every, err := time.ParseDuration(parts[1].text)
		if err != nil || every < MinInterval || every > MaxInterval || every%time.Second != 0 {
			return Schedule{}, syntax(parts[1].at, "interval %q, want whole seconds from %s to %s", parts[1].text, short(MinInterval), short(MaxInterval))
		}
		return Schedule{every: every}, nil
	}
	at, err := time.Parse(time.RFC3339, parts[1].text)
	if err != nil || at.Nanosecond() != 0 {
		return Schedule{}, syntax(parts[1].at, "time %q, want RFC 3339 in whole seconds with a zone, such as 2027-03-01T08:00:00Z", parts[1].text)
	}
	return Schedule{at: at.UTC()}, nil
}

// hostZone matches zone names that exist only in the database of a host. Their meaning depends
// on the host, and time.LoadLocation ignores the leap seconds of right/.
var hostZone = regexp.MustCompile(`^(Local|localtime|posixrules|(posix|right)/.*)$`)

func parseZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || hostZone.MatchString(name) {
		return nil, fmt.Errorf("unknown time zone %q, want a name of the IANA database, such as Europe/Berlin", name)
	}
	return zone, nil
}

// Next returns the first firing after a time, in UTC; ok is false if there is no further one.
// Intervals count from since, when the schedule was committed. Nothing fires before since.
func (s Schedule) Next(after, since time.Time) (firing time.Time, ok bool) {
	if after.Before(since) {
		after = since
	}
	switch {
	case s.cron != nil:
		return s.nextLocal(after)
	case s.every > 0:
		passed := after.Sub(since)
		return since.Add(passed - passed%s.every + s.every).UTC(), true
	}
	return s.at, s.at.After(after)
}

// nextLocal returns the next time of a cron expression. It iterates over the periods of the
// zone with a constant offset.
func (s Schedule) nextLocal(after time.Time) (time.Time, bool) {
	from := after.Add(1)
	for horizon := after.AddDate(calendarCycle, 0, 0); from.Before(horizon); {
		start, end := from.In(s.zone).ZoneBounds()
		if end.IsZero() {
			end = horizon
		}
		offset := offsetAt(from, s.zone)
		low := from.UTC().Add(offset)
		if !s.cron.elapsed && !start.IsZero() {
			passed := latestWall(start, s.zone)
			if first := start.UTC().Add(offset); !start.Before(from) && passed.Before(first) {
				if _, skipped := s.cron.next(passed, first); skipped {
					return start.UTC(), true
				}
			}
			if low.Before(passed) {
				low = passed
			}
		}
		if wall, ok := s.cron.next(low, end.UTC().Add(offset)); ok {
			return wall.Add(-offset), true
		}
		from = end
	}
	return time.Time{}, false
}

func offsetAt(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// latestWall returns the latest local time that clocks in the zone showed before start, the
// start of an offset. Times of day before it have already passed.
func latestWall(start time.Time, zone *time.Location) time.Time {
	const farthest = 48 * time.Hour // greater than the difference between any two offsets
	var latest time.Time
	for end := start; !end.Before(start.Add(-farthest)); {
		before := end.Add(-1)
		if wall := end.UTC().Add(offsetAt(before, zone)); wall.After(latest) {
			latest = wall
		}
		begin, _ := before.In(zone).ZoneBounds()
		if begin.IsZero() {
			break
		}
		end = begin
	}
	return latest
}
