package archive

import (
	"fmt"
	"strings"
	"time"
)

// Period is the local time of a recording. It has no UTC offset, because the sources write
// -05:00 for all recordings, even in summer.
type Period struct {
	// Start and End are days in the form YYYY-MM-DD, or YYYY-MM or YYYY if the rest is unknown.
	// End is empty or not before Start.
	Start, End string
	// StartClock and EndClock are in the form HH:MM, or empty.
	StartClock, EndClock string
	// DayEstimated and ClockEstimated are true if the days or the clocks are bounds of an
	// unknown time.
	DayEstimated, ClockEstimated bool
}

const (
	dayForm   = "2006-01-02"
	monthForm = "2006-01"
	clockForm = "15:04"
)

// ParsePeriod parses one or two RFC 3339 times or days, separated by "/". For other text, ok is
// false.
func ParsePeriod(text string) (p Period, ok bool) {
	first, second, _ := strings.Cut(strings.TrimSpace(text), "/")
	p.Start, p.StartClock, ok = parseInstant(first)
	if !ok {
		return Period{}, false
	}
	end, clock, known := parseInstant(second)
	if known && (end > p.Start || end == p.Start && clock >= p.StartClock) {
		p.End, p.EndClock = end, clock
	}
	return p, true
}

func parseInstant(text string) (day, clock string, ok bool) {
	text = strings.TrimSpace(text)
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if at, err := time.Parse(form, text); err == nil {
			return at.Format(dayForm), at.Format(clockForm), true
		}
	}
	day, ok = ParseDay(text)
	return day, "", ok
}

// ParseDay parses a day in a form that finding aids use: 1971-10-21, 19711021, October 21,
// 1971, 21 October 1971, October 1971, 1971-10, 1971. It returns false for other text.
func ParseDay(text string) (string, bool) {
	text = strings.TrimSpace(text)
	for _, form := range []string{dayForm, "20060102", "January 2, 2006", "Jan 2, 2006", "Jan. 2, 2006", "2 January 2006", "2006 January 2"} {
		if at, err := time.Parse(form, text); err == nil {
			return at.Format(dayForm), true
		}
	}
	for _, form := range []string{monthForm, "January 2006", "January, 2006", "2006 January"} {
		if at, err := time.Parse(form, text); err == nil {
			return at.Format(monthForm), true
		}
	}
	if at, err := time.Parse("2006", text); err == nil {
		return at.Format("2006"), true
	}
	return "", false
}

// last returns End, or Start if there is no End.
func (p Period) last() string {
	if p.End != "" {
		return p.End
	}
	return p.Start
}

// Created returns the date for pinax.json, a day or a year. It is not more precise than the
// source, and empty if the date is unknown.
func (p Period) Created() string {
	known := p.known()
	if len(known) == len(monthForm) { // pinax.json has no months
		return known[:4]
	}
	if known == "" && len(p.Start) >= 4 {
		return p.Start[:4]
	}
	return known
}

// known returns the certain part of Start: all of it, or for an estimate the common prefix of
// both bounds.
func (p Period) known() string {
	if !p.DayEstimated || p.last() == p.Start {
		return p.Start
	}
	for _, n := range []int{len(monthForm), len("2006")} {
		if len(p.Start) >= n && len(p.last()) >= n && p.Start[:n] == p.last()[:n] {
			return p.Start[:n]
		}
	}
	return ""
}

// Words formats the period as text: "October 21, 1971, 8:20 am to 8:30 am".
func (p Period) Words() string {
	if p.Start == "" {
		return ""
	}
	start, end := dayWords(p.Start), dayWords(p.last())
	var s string
	switch {
	case start == end && p.StartClock == "":
		s = start
	case start == end && p.ClockEstimated:
		s = fmt.Sprintf("%s, at an unknown time between %s and %s", start, clockWords(p.StartClock), clockWords(p.EndClock))
	case start == end && p.EndClock != "" && p.EndClock != p.StartClock:
		s = fmt.Sprintf("%s, %s to %s", start, clockWords(p.StartClock), clockWords(p.EndClock))
	case start == end:
		s = start + ", " + clockWords(p.StartClock)
	case p.DayEstimated:
		s = fmt.Sprintf("between %s and %s", start, end)
	default:
		s = fmt.Sprintf("%s to %s", start, end)
	}
	return s
}

func dayWords(day string) string {
	if at, err := time.Parse(dayForm, day); err == nil {
		return at.Format("January 2, 2006")
	}
	if at, err := time.Parse(monthForm, day); err == nil {
		return at.Format("January 2006")
	}
	return day
}

func clockWords(clock string) string {
	at, err := time.Parse(clockForm, clock)
	if err != nil {
		return "an unknown time"
	}
	return at.Format("3:04 pm")
}

// span returns the period from the earliest start to the latest end.
func span(periods []Period) Period {
	var s Period
	for _, p := range periods {
		if p.Start == "" {
			continue
		}
		if s.Start == "" || p.Start < s.Start {
			s.Start = p.Start
		}
		s.End = max(s.End, p.last())
		s.DayEstimated = s.DayEstimated || p.DayEstimated
	}
	return s
}
