package job

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

// Calendar is a named list of dates on which a job does not fire, such as public holidays.
type Calendar struct {
	Name string `json:"name"`
	// Dates have the form 2027-12-24, in the time zone of the schedule.
	Dates []string `json:"dates"`
	// Firings says what happens to the firings of these dates; empty means FiringsSkip.
	Firings Firings `json:"firings,omitempty"`
}

// Firings says what happens to the firings of a date.
type Firings string

// FiringsSkip drops the firings. The others move them by whole days, to a day that is in no
// calendar of the job, and is Monday to Friday for a weekday.
const (
	FiringsSkip            Firings = "skip"
	FiringsNextDay         Firings = "next_day"
	FiringsPreviousDay     Firings = "previous_day"
	FiringsNextWeekday     Firings = "next_weekday"
	FiringsPreviousWeekday Firings = "previous_weekday"
)

// The limits of calendars. A firing is moved by at most maxMove days; if all of them are in
// calendars, it is dropped.
const (
	maxCalendars = 10
	maxDates     = 1000
	maxMove      = 31
)

// calendar is the compiled form of the calendars of a job. Dates are midnights in UTC.
type calendar struct {
	off map[time.Time]bool
	// moves are ordered by their target.
	moves []move
}

// move moves the firings of a date to another one.
type move struct{ from, to time.Time }

// calendarOf compiles valid calendars; nil without dates. A date of several calendars is treated
// as the first of them says.
func calendarOf(calendars []Calendar) *calendar {
	c := &calendar{off: map[time.Time]bool{}}
	firings := map[time.Time]Firings{}
	for _, each := range calendars {
		for _, text := range each.Dates {
			date, _ := time.Parse(time.DateOnly, text)
			if !c.off[date] {
				c.off[date], firings[date] = true, each.Firings
			}
		}
	}
	if len(c.off) == 0 {
		return nil
	}
	for date, how := range firings {
		if to, ok := c.target(date, how); ok {
			c.moves = append(c.moves, move{date, to})
		}
	}
	slices.SortFunc(c.moves, func(a, b move) int { return cmp.Or(a.to.Compare(b.to), a.from.Compare(b.from)) })
	return c
}

// target returns the date to which the firings of a date move.
func (c *calendar) target(date time.Time, how Firings) (to time.Time, ok bool) {
	step := 1
	switch how {
	case FiringsNextDay, FiringsNextWeekday:
	case FiringsPreviousDay, FiringsPreviousWeekday:
		step = -1
	default:
		return time.Time{}, false
	}
	weekdays := how == FiringsNextWeekday || how == FiringsPreviousWeekday
	for days := range maxMove {
		to = date.AddDate(0, 0, step*(days+1))
		if weekend := to.Weekday() == time.Saturday || to.Weekday() == time.Sunday; !c.off[to] && (!weekdays || !weekend) {
			return to, true
		}
	}
	return time.Time{}, false
}

// nextWall is like cron.next with the calendar.
func (t times) nextWall(from, until time.Time) (wall time.Time, ok bool) {
	c := t.calendar
	if c == nil {
		return t.cron.next(from, until)
	}
	const day = 24 * time.Hour // of a wall time
	for at := from; ; {
		if wall, ok = t.cron.next(at, until); !ok || !c.off[wall.Truncate(day)] {
			break
		}
		at = wall.Truncate(day).Add(day)
	}
	first, _ := slices.BinarySearchFunc(c.moves, from.Truncate(day), func(m move, date time.Time) int { return m.to.Compare(date) })
	for _, m := range c.moves[first:] {
		if !m.to.Before(until) || ok && m.to.After(wall) {
			break
		}
		by := m.to.Sub(m.from)
		moved, found := t.cron.next(later(from.Add(-by), m.from), earlier(until.Add(-by), m.from.Add(day)))
		if found && (!ok || moved.Add(by).Before(wall)) {
			wall, ok = moved.Add(by), true
		}
	}
	return wall, ok
}

func validateCalendars(d Definition, p *problems) {
	if len(d.Calendars) > maxCalendars {
		p.bad("calendars", "%d calendars, want at most %d", len(d.Calendars), maxCalendars)
	}
	for i, c := range d.Calendars {
		at := fmt.Sprintf("calendars.%d", i)
		if !limit.ValidName(c.Name) {
			p.bad(at+".name", "malformed name %q, %s", limit.Cut(c.Name, nameLimit), wantName)
		}
		if slices.ContainsFunc(d.Calendars[:i], func(other Calendar) bool { return other.Name == c.Name }) {
			p.addConflict(at+".name", "a second calendar %q, want each name once", limit.Cut(c.Name, nameLimit))
		}
		if len(c.Dates) == 0 || len(c.Dates) > maxDates {
			p.bad(at+".dates", "%d dates, want 1 to %d", len(c.Dates), maxDates)
		}
		for n, text := range c.Dates {
			if _, err := time.Parse(time.DateOnly, text); err != nil {
				p.bad(fmt.Sprintf("%s.dates.%d", at, n), "malformed date %q, want one such as 2027-12-24", limit.Cut(text, nameLimit))
			}
		}
		oneOf(p, at+".firings", c.Firings, FiringsSkip, FiringsNextDay, FiringsPreviousDay, FiringsNextWeekday, FiringsPreviousWeekday)
	}
}
