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

// Schedule is the times at which a job fires: those of cron expressions in a time zone, at an
// interval, or once. The zero value never fires.
//
// In a zone with daylight saving time, an expression whose minute or hour field starts with '*'
// follows elapsed time: it fires at every local time that it selects, in both passes of a
// repeated hour, and not for times that a gap skips. Other expressions name times of day, and
// each fires once. A time that occurs twice fires at the first occurrence. A time in a gap
// fires at the first instant after the gap; several times in one gap are one firing. A day that
// a zone skips is such a gap.
type Schedule struct {
	times []times
	// start and end limit the firings to start <= t < end; zero is no limit.
	start, end time.Time
}

// times are the times of one expression: of cron in a zone without the dates of the calendar, at
// an interval, or once.
type times struct {
	cron     *cron
	zone     *time.Location
	calendar *calendar
	every    time.Duration
	at       time.Time
}

// interval returns the interval of a schedule that has nothing else; 0 for others.
func (s Schedule) interval() time.Duration {
	if len(s.times) != 1 {
		return 0
	}
	return s.times[0].every
}

// zone returns the zone in which people read the times of the schedule.
func (s Schedule) zone() *time.Location {
	if len(s.times) > 0 && s.times[0].zone != nil {
		return s.times[0].zone
	}
	return time.UTC
}

// ParseSchedule parses a schedule:
//
//	0 2 * * MON-FRI            minute, hour, day of month, month, day of week
//	30 0 2 * * MON-FRI         the same with a second first
//	@daily                     also @yearly, @annually, @monthly, @weekly, @midnight, @hourly
//	@every 90m                 an interval of whole seconds, 1 s to 366 days
//	@at 2027-03-01T08:00:00Z   once, at a time of RFC 3339
//
// A cron field is *, a value, a range, or a list of them. * and a range can have a step (*/15,
// 8-18/2). Months and days of the week have three-letter names; 0 and 7 are Sunday. A day of
// month is also L (the last one), L-3 (three days before it), 15W (the weekday nearest to the
// 15th, in the same month) and LW (the last weekday). A day of the week is also FRI#3 (the third
// Friday of the month) and FRIL (the last one). If both day fields are restricted, a day matches
// if either field selects it; otherwise both must. A day field that starts with * is not
// restricted. zone is a name of the IANA time zone database, empty for UTC; only cron
// expressions use it. Errors about the schedule are of type *SyntaxError.
func ParseSchedule(text, zone string) (Schedule, error) {
	location, err := parseZone(zone)
	if err != nil {
		return Schedule{}, err
	}
	parsed, err := parseTimes(text, location)
	if err != nil {
		return Schedule{}, err
	}
	return Schedule{times: []times{parsed}}, nil
}

// parseTimes parses one expression. The errors are of type *SyntaxError.
func parseTimes(text string, location *time.Location) (times, error) {
	parts := words(text)
	if len(parts) == 0 {
		return times{}, syntax(1, "empty schedule, want five cron fields, @daily, @every 1h or @at with a time")
	}
	if zone, ok := zoneOf(parts[0].text); ok {
		return times{}, syntax(parts[0].at, "a time zone in the schedule, want the field timeZone%s", strings.TrimSuffix(": "+zone, ": "))
	}
	if !strings.HasPrefix(parts[0].text, "@") {
		c, err := parseCron(text)
		return times{cron: &c, zone: location}, err
	}
	name := strings.ToLower(parts[0].text)
	if fields, ok := cronMacros[name]; ok {
		if len(parts) > 1 {
			return times{}, syntax(parts[1].at, "%q after %s, want nothing", parts[1].text, name)
		}
		c, err := parseCron(fields)
		return times{cron: &c, zone: location}, err
	}
	if name != "@every" && name != "@at" {
		return times{}, syntax(parts[0].at, "unknown macro %q, want @yearly, @monthly, @weekly, @daily, @hourly, @every or @at", parts[0].text)
	}
	if len(parts) != 2 {
		return times{}, syntax(parts[0].at, "%d words after %s, want 1", len(parts)-1, name)
	}
	if name == "@every" {
		every, err := time.ParseDuration(parts[1].text)
		if err != nil || every < MinInterval || every > MaxInterval || every%time.Second != 0 {
			return times{}, syntax(parts[1].at, "interval %q, want whole seconds from %s to %s", parts[1].text, short(MinInterval), short(MaxInterval))
		}
		return times{every: every}, nil
	}
	at, err := time.Parse(time.RFC3339, parts[1].text)
	if err != nil || at.Nanosecond() != 0 {
		return times{}, syntax(parts[1].at, "time %q, want RFC 3339 in whole seconds with a zone, such as 2027-03-01T08:00:00Z", parts[1].text)
	}
	return times{at: at.UTC()}, nil
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
		for _, likely := range []string{properName(name), strings.ToUpper(name)} {
			if _, err := time.LoadLocation(likely); err == nil && likely != name && !hostZone.MatchString(likely) {
				return nil, fmt.Errorf("unknown time zone %q, did you mean %s?", name, likely)
			}
		}
		return nil, fmt.Errorf("unknown time zone %q, want a name of the IANA database, such as Europe/Berlin", name)
	}
	return zone, nil
}

// properName returns the name of a zone in which each word has one capital letter.
func properName(name string) string {
	words, initial := []byte(strings.ToLower(name)), true
	for i, c := range words {
		if initial && 'a' <= c && c <= 'z' {
			words[i] = c - 'a' + 'A'
		}
		initial = c == '/' || c == '_' || c == '-'
	}
	return string(words)
}

// Next returns the first firing after a time, in UTC; ok is false if there is no further one.
// Intervals count from since, when the schedule was committed, or from a later start. Nothing
// fires before since.
func (s Schedule) Next(after, since time.Time) (firing time.Time, ok bool) {
	if since.Before(s.start) {
		since = s.start
	}
	if after.Before(since) {
		after = since
		if since.Equal(s.start) {
			after = s.start.Add(-1) // the start is a time of the schedule
		}
	}
	for _, t := range s.times {
		if next, found := t.next(after, since); found && (!ok || next.Before(firing)) {
			firing, ok = next, true
		}
	}
	if ok && !s.end.IsZero() && !firing.Before(s.end) {
		return time.Time{}, false
	}
	return firing, ok
}

// Has reports whether at is a time of the schedule. An interval has no fixed times: its times
// count from the last change of the schedule.
func (s Schedule) Has(at time.Time) bool {
	if s.interval() > 0 {
		return false
	}
	next, ok := s.Next(at.Add(-1), time.Time{})
	return ok && next.Equal(at)
}

func (t times) next(after, since time.Time) (time.Time, bool) {
	switch {
	case t.cron != nil:
		return t.nextLocal(after)
	case t.every > 0:
		passed := after.Sub(since)
		return since.Add(passed - passed%t.every + t.every).UTC(), true
	}
	return t.at, t.at.After(after)
}

// nextLocal returns the next time of a cron expression. It iterates over the periods of the
// zone with a constant offset.
func (t times) nextLocal(after time.Time) (time.Time, bool) {
	from := after.Add(1)
	for horizon := after.AddDate(calendarCycle, 0, 0); from.Before(horizon); {
		start, end := from.In(t.zone).ZoneBounds()
		if end.IsZero() {
			end = horizon
		}
		offset := offsetAt(from, t.zone)
		low := from.UTC().Add(offset)
		if !t.cron.elapsed && !start.IsZero() {
			passed := latestWall(start, t.zone)
			if first := start.UTC().Add(offset); !start.Before(from) && passed.Before(first) {
				if _, skipped := t.nextWall(passed, first); skipped {
					return start.UTC(), true
				}
			}
			if low.Before(passed) {
				low = passed
			}
		}
		if wall, ok := t.nextWall(low, end.UTC().Add(offset)); ok {
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
