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
	second, minute, hour, day, month, weekday uint64
	// fromEnd has the days before the last one of the month: bit 0 is L, bit 3 is L-3. nearest has
	// the days of nW; bit 0 is LW. nth has the weeks of each weekday: bit 3 is #3, bit 0 is L.
	fromEnd, nearest uint64
	nth              [7]uint64
	// anyDay and anyWeekday: the field starts with '*'. A day must then match both day fields;
	// if neither starts with '*', one is enough.
	anyDay, anyWeekday bool
	// elapsed: the minute or the hour field starts with '*', so the expression follows elapsed
	// time instead of the time of day.
	elapsed bool
}

// The indexes of the fields that name days.
const (
	dayField     = 3
	weekdayField = 5
)

// cronField describes one field of an expression.
type cronField struct {
	name        string
	first, last int
	// names are the names of the values from first; empty if the field has only numbers.
	names []string
}

var cronFields = [...]cronField{
	{"second", 0, 59, nil},
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of month", 1, 31, nil},
	{"month", 1, 12, []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}},
	{"day of week", 0, 7, []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"}},
}

// cronMacros has the names of whole expressions. scheduleWords of the console has them too.
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

// cronParts returns the fields of an expression with their descriptions. An expression of five
// fields has no seconds.
func cronParts(text string) (parts []word, fields []cronField, err error) {
	const want = "want 5: minute, hour, day of month, month, day of week, or 6 with the second first"
	parts = words(text)
	switch most := len(cronFields); {
	case len(parts) > most:
		return nil, nil, syntax(parts[most].at, "%d fields, %s", len(parts), want)
	case len(parts) < most-1:
		return nil, nil, syntax(len(text)+1, "%d fields, %s", len(parts), want)
	}
	return parts, cronFields[len(cronFields)-len(parts):], nil
}

// parseCron parses a cron expression. The errors are of type *SyntaxError.
func parseCron(text string) (cron, error) {
	parts, fields, err := cronParts(text)
	if err != nil {
		return cron{}, err
	}
	c := cron{second: 1}
	first := len(cronFields) - len(fields)
	for i, set := range []*uint64{&c.second, &c.minute, &c.hour, &c.day, &c.month, &c.weekday}[first:] {
		if *set, err = c.parse(first+i, parts[i]); err != nil {
			return cron{}, err
		}
	}
	starts := func(i int) bool { return parts[i-first].text[0] == '*' }
	c.weekday |= c.weekday >> 7 & 1 // 7 is also Sunday
	c.anyDay, c.anyWeekday, c.elapsed = starts(dayField), starts(weekdayField), starts(1) || starts(2)
	cycle := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, ok := c.next(cycle, cycle.AddDate(calendarCycle, 0, 0)); !ok {
		day, month, weekday := parts[dayField-first], parts[dayField+1-first], parts[weekdayField-first]
		return cron{}, syntax(day.at, "no date has day of month %q, month %q and day of week %q", day.text, month.text, weekday.text)
	}
	return c, nil
}

// calendarCycle is the number of years after which the weekdays of all dates repeat.
const calendarCycle = 400

// parse parses a field, a list of items. It stores the items that depend on the month in c.
func (c *cron) parse(field int, w word) (set uint64, err error) {
	at := w.at
	for item := range strings.SplitSeq(w.text, ",") {
		special, err := c.parseSpecial(field, word{strings.ToUpper(item), at})
		if err != nil {
			return 0, err
		}
		if !special {
			more, err := cronFields[field].parseItem(word{item, at})
			if err != nil {
				return 0, err
			}
			set |= more
		}
		at += len(item) + 1
	}
	return set, nil
}

// parseSpecial parses an item whose day depends on the month: L, L-3, LW and 15W of the day of
// month, FRIL and FRI#3 of the day of week. ok is false for other items.
func (c *cron) parseSpecial(field int, w word) (ok bool, err error) {
	f := cronFields[field]
	number := func(text string, at, first, last int) (n int) {
		n, err = strconv.Atoi(text)
		if err != nil || n < first || n > last || text[0] == '+' {
			err = syntax(at, "%q in %q of the %s, want %d to %d", text, w.text, f.name, first, last)
			return 0
		}
		return n
	}
	switch {
	case field == dayField && w.text == "L":
		c.fromEnd |= 1
	case field == dayField && strings.HasPrefix(w.text, "L-"):
		c.fromEnd |= 1 << number(w.text[2:], w.at+2, 1, 30)
	case field == dayField && w.text == "LW":
		c.nearest |= 1
	case field == dayField && strings.HasSuffix(w.text, "W"):
		c.nearest |= 1 << number(strings.TrimSuffix(w.text, "W"), w.at, 1, 31)
	case field == weekdayField && strings.HasSuffix(w.text, "L"):
		var day int
		if day, err = f.value(word{strings.TrimSuffix(w.text, "L"), w.at}, false); err == nil {
			c.nth[day%7] |= 1
		}
	case field == weekdayField && strings.Contains(w.text, "#"):
		name, week, _ := strings.Cut(w.text, "#")
		var day int
		if day, err = f.value(word{name, w.at}, false); err == nil {
			c.nth[day%7] |= 1 << number(week, w.at+len(name)+1, 1, 5)
		}
	default:
		return false, nil
	}
	return true, err
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
		return 0, syntax(w.at+i, "%q of the %s is not supported here, %s, lists, ranges and steps", w.text[i:i+1], f.name, want)
	}
	return 0, syntax(w.at, "%q of the %s, %s", w.text, f.name, want)
}

// onDay reports whether the expression selects the day. If both day fields are
// restricted, either may select it.
func (c cron) onDay(wall time.Time) bool {
	last := time.Date(wall.Year(), wall.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
	n, w := wall.Day(), int(wall.Weekday())
	day := has(c.day, n) || has(c.fromEnd, last-n) || c.onNearest(n, last, w)
	weekday := has(c.weekday, w) || has(c.nth[w], (n+6)/7) || has(c.nth[w], 0) && n+7 > last
	if c.anyDay || c.anyWeekday {
		return day && weekday
	}
	return day || weekday
}

// onNearest reports whether day n, a weekday w of a month with last days, is the weekday nearest
// to a day of c.nearest in this month.
func (c cron) onNearest(n, last, w int) bool {
	if c.nearest == 0 || w == 0 || w == 6 {
		return false
	}
	wanted := func(day int) bool { return day <= last && (has(c.nearest, day) || day == last && has(c.nearest, 0)) }
	switch {
	case wanted(n):
		return true
	case w == 1: // of a Sunday, or of a Saturday the 1st
		return n > 1 && wanted(n-1) || n == 3 && wanted(1)
	case w == 5: // of a Saturday, or of a Sunday at the end of the month
		return wanted(n+1) || n+2 == last && wanted(last)
	}
	return false
}

func has(set uint64, value int) bool { return set>>value&1 == 1 }

// next returns the first time t with from <= t < until that the expression selects. Times are
// wall times: local times stored as UTC.
func (c cron) next(from, until time.Time) (wall time.Time, ok bool) {
	wall = from.Truncate(time.Second)
	if wall.Before(from) {
		wall = wall.Add(time.Second)
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
		case !has(c.minute, wall.Minute()):
			wall = wall.Truncate(time.Minute).Add(time.Duration(bits.TrailingZeros64(c.minute>>wall.Minute())) * time.Minute)
		case c.second>>wall.Second() == 0:
			wall = wall.Truncate(time.Minute).Add(time.Minute)
		default:
			wall = wall.Add(time.Duration(bits.TrailingZeros64(c.second>>wall.Second())) * time.Second)
			return wall, wall.Before(until)
		}
	}
	return time.Time{}, false
}
