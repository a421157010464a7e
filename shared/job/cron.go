package job

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// cron is a cron expression. Each field is a bit set of its selected values.
type cron struct {
	minute, hour, day, month, weekday uint64
	// anyDay and anyWeekday: the field starts with '*'. A day must then match both day fields;
	// if neither starts with '*', one is enough.
	anyDay, anyWeekday bool
	// elapsed: the minute or the hour field starts with '*', so the expression follows elapsed
	// time instead of the time of day.
	elapsed bool
}

// cronField describes one field of an expression.
type cronField struct {
	name        string
	first, last int
	// names are the names of the values from first; empty if the field has only numbers.
	names []string
}

var cronFields = [...]cronField{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of month", 1, 31, nil},
	{"month", 1, 12, []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}},
	{"day of week", 0, 7, []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"}},
}

var cronMacros = map[string]string{
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
	"@monthly":  "0 0 1 * *",
	"@weekly":   "0 0 * * 0",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@hourly":   "0 * * * *",
}

// word is a part of an expression. at is its position, from 1.
type word struct {
	text string
	at   int
}

// words splits a text at spaces and tabs.
func words(text string) []word {
	var found []word
	start := -1
	for i := range len(text) + 1 {
		blank := i == len(text) || text[i] == ' ' || text[i] == '\t'
		if blank && start >= 0 {
			found = append(found, word{text[start:i], start + 1})
			start = -1
		} else if !blank && start < 0 {
			start = i
		}
	}
	return found
}

// parseCron parses a cron expression with five fields. The errors are of type *SyntaxError.
func parseCron(text string) (cron, error) {
	parts := words(text)
	if len(parts) > len(cronFields) {
		return cron{}, syntax(parts[len(cronFields)].at, "%d fields, want 5: minute, hour, day of month, month, day of week", len(parts))
	}
	if len(parts) < len(cronFields) {
		return cron{}, syntax(len(text)+1, "%d fields, want 5: minute, hour, day of month, month, day of week", len(parts))
	}
	var sets [len(cronFields)]uint64
	for i, field := range cronFields {
		set, err := field.parse(parts[i])
		if err != nil {
			return cron{}, err
		}
		sets[i] = set
	}
	starts := func(i int) bool { return parts[i].text[0] == '*' }
	c := cron{
		minute: sets[0], hour: sets[1], day: sets[2], month: sets[3],
		weekday: sets[4] | sets[4]>>7&1, // 7 is also Sunday
		anyDay:  starts(2), anyWeekday: starts(4), elapsed: starts(0) || starts(1),
	}
	cycle := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, ok := c.next(cycle, cycle.AddDate(calendarCycle, 0, 0)); !ok {
		return cron{}, syntax(parts[2].at, "no date has day of month %q, month %q and day of week %q", parts[2].text, parts[3].text, parts[4].text)
	}
	return c, nil
}

// calendarCycle is the number of years after which the weekdays of all dates repeat.
const calendarCycle = 400

func (f cronField) parse(w word) (set uint64, err error) {
	at := w.at
	for item := range strings.SplitSeq(w.text, ",") {
		more, err := f.parseItem(word{item, at})
		if err != nil {
			return 0, err
		}
		set |= more
		at += len(item) + 1
	}
	return set, nil
}

// parseItem parses '*', a value or a range. '*' and a range can have a step.
func (f cronField) parseItem(w word) (set uint64, err error) {
	span, step, stepped := strings.Cut(w.text, "/")
	first, last := f.first, f.last
	if span == "*" {
		last = min(last, first+f.count()-1)
	} else {
		low, high, ranged := strings.Cut(span, "-")
		if first, err = f.value(word{low, w.at}, false); err != nil {
			return 0, err
		}
		last = first
		if ranged {
			if last, err = f.value(word{high, w.at + len(low) + 1}, true); err != nil {
				return 0, err
			}
		}
		if last < first {
			return 0, syntax(w.at, "range %q ends before it starts", span)
		}
		if stepped && !ranged {
			return 0, syntax(w.at+len(span), "step after the single value %q, want it after * or a range, such as %s-%d/%s", span, span, f.last, step)
		}
	}
	by := 1
	if stepped {
		at := w.at + len(span) + 1
		if by, err = strconv.Atoi(step); err != nil || by < 1 || step[0] == '+' {
			return 0, syntax(at, "step %q of the %s, want a whole number from 1", step, f.name)
		}
	}
	for v := first; v <= last; v += by {
		set |= 1 << v
		if by > last {
			break
		}
	}
	return set, nil
}

// count returns the number of distinct values: 0 and 7 are both Sunday.
func (f cronField) count() int {
	if f.last == 7 {
		return 7
	}
	return f.last - f.first + 1
}

// value parses a number or a name. SUN at the end of a range is 7.
func (f cronField) value(w word, end bool) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(w.text, name) && !(end && name == "SUN" && i == 0) {
			return f.first + i, nil
		}
	}
	n, err := strconv.Atoi(w.text)
	if err == nil && n >= f.first && n <= f.last && w.text[0] != '+' && w.text[0] != '-' {
		return n, nil
	}
	want := fmt.Sprintf("want %d to %d", f.first, f.last)
	if len(f.names) > 0 {
		want += fmt.Sprintf(" or %s to %s", f.names[0], f.names[len(f.names)-1])
	}
	if i := strings.IndexAny(strings.ToUpper(w.text), "?LW#H"); i >= 0 && err != nil {
		return 0, syntax(w.at+i, "%q of the %s is not supported, %s, lists, ranges and steps", w.text[i:i+1], f.name, want)
	}
	return 0, syntax(w.at, "%q of the %s, %s", w.text, f.name, want)
}

// onDay reports whether the expression selects the day. If both day fields are
// restricted, either may select it.
func (c cron) onDay(wall time.Time) bool {
	day, weekday := has(c.day, wall.Day()), has(c.weekday, int(wall.Weekday()))
	if c.anyDay || c.anyWeekday {
		return day && weekday
	}
	return day || weekday
}

func has(set uint64, value int) bool { return set>>value&1 == 1 }

// next returns the first time t with from <= t < until that the expression selects. Times are
// wall times: local times stored as UTC.
func (c cron) next(from, until time.Time) (wall time.Time, ok bool) {
	wall = from.Truncate(time.Minute)
	if wall.Before(from) {
		wall = wall.Add(time.Minute)
	}
	for wall.Before(until) {
		year, month, day := wall.Date()
		switch {
		case !has(c.month, int(month)):
			wall = time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC)
		case !c.onDay(wall):
			wall = time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC)
		case c.hour>>wall.Hour() == 0:
			wall = time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC)
		case !has(c.hour, wall.Hour()):
			wall = wall.Truncate(time.Hour).Add(time.Duration(bits.TrailingZeros64(c.hour>>wall.Hour())) * time.Hour)
		case c.minute>>wall.Minute() == 0:
			wall = wall.Truncate(time.Hour).Add(time.Hour)
		default:
			wall = wall.Add(time.Duration(bits.TrailingZeros64(c.minute>>wall.Minute())) * time.Minute)
			return wall, wall.Before(until)
		}
	}
	return time.Time{}, false
}
