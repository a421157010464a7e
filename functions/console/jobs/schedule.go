package jobs

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// scheduleWords describes expressions that are separated by "; " in words. One of unknown form is
// returned as it is.
func scheduleWords(schedule string) string {
	if first, more, ok := strings.Cut(schedule, "; "); ok {
		return scheduleWords(first) + "; " + scheduleWords(more)
	}
	parts := strings.Fields(schedule)
	if len(parts) == 0 {
		return ""
	}
	macros := map[string]string{
		"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
		"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
	}
	name := strings.ToLower(parts[0])
	if fields, ok := macros[name]; ok {
		parts = strings.Fields(fields)
	}
	switch {
	case name == "@every" && len(parts) == 2:
		if every, err := time.ParseDuration(parts[1]); err == nil {
			return "every " + period(every)
		}
	case name == "@at" && len(parts) == 2:
		if at, err := time.Parse(time.RFC3339, parts[1]); err == nil {
			return "once, on " + at.Format("2 January 2006 at 15:04 MST")
		}
	case len(parts) == 6 && parts[0] == "0":
		return scheduleWords(strings.Join(parts[1:], " "))
	case len(parts) == 5 && dependsOnMonth(parts[2], parts[4]):
		return specialWords(parts)
	case len(parts) == 5:
		return cronWords(parts)
	}
	return schedule
}

// period returns a duration in all of its units; a single unit has no number.
func period(d time.Duration) string {
	var parts []string
	for _, unit := range []struct {
		length     time.Duration
		one, short string
	}{{24 * time.Hour, "day", "d"}, {time.Hour, "hour", "h"}, {time.Minute, "minute", "min"}, {time.Second, "second", "s"}} {
		n := d / unit.length
		if d %= unit.length; n == 1 && d == 0 && len(parts) == 0 {
			return unit.one
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, unit.short))
		}
	}
	return strings.Join(parts, " ")
}

// cronWords describes the five fields of a cron expression.
func cronWords(fields []string) string {
	text, daily := timeWords(fields[0], fields[1])
	days := dayWords(fields[2], fields[4])
	if daily && days == "" {
		text = "every day " + text
	}
	if days != "" {
		text += ", " + days
	}
	if n, ok := strings.CutPrefix(fields[3], "*/"); ok {
		text += ", every " + n + " months"
	} else if fields[3] != "*" {
		text += ", in " + fieldWords(fields[3], monthName)
	}
	return text
}

// dependsOnMonth reports whether a day field has L, W or #.
func dependsOnMonth(day, weekday string) bool {
	return strings.ContainsAny(strings.ToUpper(day), "LW") || strings.ContainsAny(strings.ToUpper(weekday), "L#")
}

// specialWords describes an expression with one day that depends on the month. It returns others as
// they are.
func specialWords(fields []string) string {
	text, daily := timeWords(fields[0], fields[1])
	day, weekday := strings.ToUpper(fields[2]), strings.ToUpper(fields[4])
	nearest, isNearest := strings.CutSuffix(day, "W")
	lastOf, isLast := strings.CutSuffix(weekday, "L")
	name, week, isNth := strings.Cut(weekday, "#")
	weeks := map[string]string{"1": "first", "2": "second", "3": "third", "4": "fourth", "5": "fifth"}
	switch {
	case !daily || fields[3] != "*" || day != "*" && weekday != "*" || strings.Contains(day+weekday, ","):
	case day == "L":
		return text + ", on the last day of the month"
	case day == "LW":
		return text + ", on the last weekday of the month"
	case isNearest:
		return text + ", on the weekday nearest to day " + nearest + " of the month"
	case isLast:
		return text + ", on the last " + weekdayName(lastOf) + " of the month"
	case isNth:
		return text + ", on the " + weeks[week] + " " + weekdayName(name) + " of the month"
	}
	return strings.Join(fields, " ")
}

// timeWords describes the minutes and the hours. daily reports whether they are times of a day.
func timeWords(minute, hour string) (text string, daily bool) {
	minutes, hours := values(minute, 59), values(hour, 23)
	if minutes != nil && hours != nil && len(minutes)*len(hours) <= 6 {
		var times []string
		for _, h := range hours {
			for _, m := range minutes {
				times = append(times, fmt.Sprintf("%02d:%02d", h, m))
			}
		}
		return "at " + listed(times), true
	}
	each := "every hour"
	if hour != "*" {
		each = "in the hours " + fieldWords(hour, plainNumber)
	}
	if n, ok := strings.CutPrefix(hour, "*/"); ok {
		each = "every " + n + " hours"
	}
	switch n, stepped := strings.CutPrefix(minute, "*/"); {
	case minute == "*" && hour == "*":
		return "every minute", false
	case minute == "*":
		return "every minute " + each, false
	case stepped && hour == "*":
		return "every " + n + " minutes", false
	case stepped:
		return "every " + n + " minutes " + each, false
	case minute == "0":
		return each, false
	}
	return each + " at minute " + fieldWords(minute, plainNumber), false
}

// dayWords describes the days of the month and of the week.
func dayWords(day, weekday string) string {
	ofMonth, ofWeek := "", ""
	if n, ok := strings.CutPrefix(day, "*/"); ok {
		ofMonth = "every " + n + " days of the month"
	} else if day != "*" {
		ofMonth = "on day " + fieldWords(day, plainNumber) + " of the month"
	}
	if weekday != "*" {
		ofWeek = "on " + fieldWords(weekday, weekdayName)
	}
	switch {
	case ofMonth == "" || ofWeek == "":
		return ofMonth + ofWeek
	case strings.HasPrefix(day, "*") || strings.HasPrefix(weekday, "*"):
		return ofMonth + " if it is also " + ofWeek
	}
	return ofMonth + " or " + ofWeek
}

// values returns the values of a field that is a list of numbers, or a step that divides its
// range; nil for another field.
func values(field string, last int) (found []int) {
	if step, ok := strings.CutPrefix(field, "*/"); ok {
		n, err := strconv.Atoi(step)
		if err != nil || n < 1 {
			return nil
		}
		if (last+1)%n == 0 && n < 12 {
			return nil // "every n" is shorter than the list
		}
		for v := 0; v <= last; v += n {
			found = append(found, v)
		}
		return found
	}
	for item := range strings.SplitSeq(field, ",") {
		n, err := strconv.Atoi(item)
		if err != nil {
			return nil
		}
		found = append(found, n)
	}
	return found
}

// fieldWords describes the items of a field.
func fieldWords(field string, name func(string) string) string {
	var items []string
	for item := range strings.SplitSeq(field, ",") {
		span, step, stepped := strings.Cut(item, "/")
		low, high, ranged := strings.Cut(span, "-")
		text := name(low)
		if ranged {
			text += " to " + name(high)
		}
		switch {
		case stepped && span == "*":
			text = "every " + step
		case stepped:
			text = "every " + step + " from " + text
		}
		items = append(items, text)
	}
	return listed(items)
}

// listed returns "a, b and c".
func listed(items []string) string {
	if n := len(items); n > 1 {
		return strings.Join(items[:n-1], ", ") + " and " + items[n-1]
	}
	return strings.Join(items, "")
}

func plainNumber(text string) string { return text }

// weekdayName returns the name of a day; 0 and 7 are Sunday.
func weekdayName(text string) string {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 && n <= 7 {
		return time.Weekday(n % 7).String()
	}
	for d := time.Sunday; d <= time.Saturday; d++ {
		if strings.EqualFold(text, d.String()[:3]) {
			return d.String()
		}
	}
	return text
}

func monthName(text string) string {
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= 12 {
		return time.Month(n).String()
	}
	for m := time.January; m <= time.December; m++ {
		if strings.EqualFold(text, m.String()[:3]) {
			return m.String()
		}
	}
	return text
}

// zoneOf returns the zone of a job; UTC if the host does not know it.
func zoneOf(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	return zone
}

// local returns a time in a zone, with the name of the zone; empty for the zero time.
func local(at time.Time, zone string) string {
	if at.IsZero() {
		return ""
	}
	at = at.In(zoneOf(zone))
	return at.Format("Mon 2 Jan 2006 ") + clockTime(at) + at.Format(" MST")
}

// utcTime returns the time of day in UTC, for a time that is shown in a zone. It is empty if the
// zone has the same time.
func utcTime(at time.Time, zone string) string {
	if _, offset := at.In(zoneOf(zone)).Zone(); offset == 0 {
		return ""
	}
	return at.UTC().Format("15:04 UTC")
}
