package command

import "time"

// times formats times. zone is the time zone of the reader; nil means UTC.
type times struct{ zone *time.Location }

// in returns the time in the zone.
func (z times) in(t time.Time) time.Time {
	if z.zone == nil {
		return t.UTC()
	}
	return t.In(z.zone)
}

// moment formats a time; the zero time is empty.
func (z times) moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return z.in(t).Format("2006-01-02 15:04:05 MST")
}

// instant formats a time for a column, with milliseconds and without its zone.
func (z times) instant(t time.Time) string { return z.in(t).Format("2006-01-02 15:04:05.000") }
