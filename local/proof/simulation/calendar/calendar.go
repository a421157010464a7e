// Package calendar computes the times of schedules with calendars a second time, by trying each date
// and each minute.
package calendar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Rule is a drawn cron expression of fixed times of day, with a second computation of its
// dates.
type Rule struct {
	// day is the text of the day of month, month and day of week.
	day string
	// on reports whether the expression selects a date.
	on func(time.Time) bool
	// seconds are the times of day.
	seconds []int
}

// Text returns the cron expression. All times of day have the same minute and second.
func (r Rule) Text() string {
	var hours []string
	for _, s := range r.seconds {
		hours = append(hours, fmt.Sprint(s/3600))
	}
	at := fmt.Sprintf("%d %s %s", r.seconds[0]/60%60, strings.Join(hours, ","), r.day)
	if second := r.seconds[0] % 60; second > 0 {
		at = fmt.Sprintf("%d %s", second, at)
	}
	return at
}

// Day is the length of a day without a change of the clocks.
const Day = 24 * time.Hour

// lastOf returns the last day of the date's month.
func lastOf(date time.Time) time.Time {
	first := time.Date(date.Year(), date.Month(), 1, 0, 0, 0, 0, time.UTC)
	return first.AddDate(0, 1, -1)
}

func weekday(date time.Time) bool {
	return date.Weekday() != time.Saturday && date.Weekday() != time.Sunday
}

// nearest returns the weekday of a month that is nearest to a day of it.
func nearest(date time.Time) time.Time {
	for distance := range 5 {
		for _, by := range []int{-distance, distance} {
			if other := date.AddDate(0, 0, by); other.Month() == date.Month() && weekday(other) {
				return other
			}
		}
	}
	return date
}

// Draw draws an expression that selects dates near now: each date if daily is true.
func Draw(random *rand.Rand, now time.Time, daily bool) (r Rule) {
	n := random.IntN(4)
	near := now.AddDate(0, 0, random.IntN(4))
	named := strings.ToUpper(near.Weekday().String()[:3])
	sameWeekday := func(d time.Time) bool { return d.Weekday() == near.Weekday() }
	kind := random.IntN(9)
	if daily {
		kind = 8
	}
	switch kind {
	case 0:
		r.day, r.on = fmt.Sprintf("L-%d * *", n+1), func(d time.Time) bool { return d.Equal(lastOf(d).AddDate(0, 0, -n-1)) }
	case 1:
		r.day, r.on = "L * *", func(d time.Time) bool { return d.Equal(lastOf(d)) }
	case 2:
		r.day, r.on = "LW * *", func(d time.Time) bool { return d.Equal(nearest(lastOf(d))) }
	case 3:
		day := near.Day()
		r.day = fmt.Sprintf("%dW * *", day)
		r.on = func(d time.Time) bool {
			of := time.Date(d.Year(), d.Month(), day, 0, 0, 0, 0, time.UTC)
			return of.Month() == d.Month() && d.Equal(nearest(of))
		}
	case 4:
		r.day, r.on = numbered(near)
	case 5:
		r.day = fmt.Sprintf("* * %sL", named)
		r.on = func(d time.Time) bool { return sameWeekday(d) && d.AddDate(0, 0, 7).Month() != d.Month() }
	case 6: // either field selects a day
		r.day = fmt.Sprintf("%d * %s", near.AddDate(0, 0, 1).Day(), named)
		r.on = func(d time.Time) bool { return sameWeekday(d) || d.Day() == near.AddDate(0, 0, 1).Day() }
	case 7:
		r.day, r.on = "* * MON-FRI", weekday
	default:
		r.day, r.on = "* * *", func(time.Time) bool { return true }
	}
	return r.at(random, [][]int{{0}, {1, 2}, {2}, {1, 2, 3}, {9}, {0, 6, 18}, {23}})
}

// DrawRepeated draws an expression of hours that are repeated when clocks go back: on each date if
// daily is true, and otherwise on a weekday of the last date of the first, second, third or fourth
// week of a month.
func DrawRepeated(random *rand.Rand, now time.Time, daily bool) (r Rule) {
	r.day, r.on = "* * *", func(time.Time) bool { return true }
	if !daily {
		near := now.AddDate(0, 0, -random.IntN(2)*7)
		for near.Day()%7 > 0 || near.Day() > 28 {
			near = near.AddDate(0, 0, 1)
		}
		r.day, r.on = numbered(near)
	}
	return r.at(random, [][]int{{1}, {2}, {1, 2}, {1, 2, 3}})
}

// numbered returns the expression of the weekday of a date with its number in the month.
func numbered(date time.Time) (text string, on func(time.Time) bool) {
	number := (date.Day()-1)/7 + 1
	text = fmt.Sprintf("* * %s#%d", strings.ToUpper(date.Weekday().String()[:3]), number)
	return text, func(d time.Time) bool { return d.Weekday() == date.Weekday() && (d.Day()-1)/7+1 == number }
}

// at returns the rule with drawn times of day of one of the lists of hours.
func (r Rule) at(random *rand.Rand, hours [][]int) Rule {
	at := random.IntN(60)*60 + random.IntN(2)*random.IntN(60)
	for _, hour := range hours[random.IntN(len(hours))] {
		r.seconds = append(r.seconds, hour*3600+at)
	}
	return r
}

// OffDates are the dates without firings, with where their firings move: skip, next_day,
// previous_day, next_weekday or previous_weekday.
type OffDates map[time.Time]string

// target returns the date of the firings of a date; ok is false if they are dropped.
func (off OffDates) target(date time.Time) (to time.Time, ok bool) {
	how, is := off[date]
	if !is {
		return date, true
	}
	step := map[string]int{"next_day": 1, "next_weekday": 1, "previous_day": -1, "previous_weekday": -1}[how]
	for to, days := date, 0; step != 0 && days < 31; days++ {
		to = to.AddDate(0, 0, step)
		if _, also := off[to]; !also && (weekday(to) || !strings.HasSuffix(how, "weekday")) {
			return to, true
		}
	}
	return date, false
}

// Instant returns the first time at which the clocks of a zone show a wall time or a later one: in
// a gap of the clocks its end. The wall time is a time in UTC.
func Instant(wall time.Time, zone *time.Location) time.Time {
	minute := wall.Truncate(time.Minute)
	for at := minute.Add(-15 * time.Hour); ; at = at.Add(time.Minute) {
		local := at.In(zone)
		shown := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), 0, 0, time.UTC)
		switch {
		case shown.Equal(minute):
			return at.Add(wall.Sub(minute))
		case shown.After(minute):
			return at
		}
	}
}

// Times returns the times of the rules in a zone with the dates of calendars, from a date for
// some days, in order.
func Times(rules []Rule, off OffDates, zone *time.Location, from time.Time, days int) (found []time.Time) {
	first := from.Truncate(Day)
	for day := range days {
		date := first.AddDate(0, 0, day)
		to, fires := off.target(date)
		if !fires {
			continue
		}
		for _, r := range rules {
			if !r.on(date) {
				continue
			}
			for _, s := range r.seconds {
				found = append(found, Instant(to.Add(time.Duration(s)*time.Second), zone).UTC())
			}
		}
	}
	slices.SortFunc(found, time.Time.Compare)
	return slices.CompactFunc(found, time.Time.Equal)
}
