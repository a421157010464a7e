package display

import "time"

// Times formats times for a reader.
type Times struct {
	// Zone is the time zone of the reader; nil means UTC.
	Zone *time.Location
}

// in returns the time in the zone.
func (z Times) in(t time.Time) time.Time {
	if z.Zone == nil {
		return t.UTC()
	}
	return t.In(z.Zone)
}

// Moment formats a time; the zero time is empty.
func (z Times) Moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return z.in(t).Format("2006-01-02 15:04:05 MST")
}

// Instant formats a time for a column, with milliseconds and without its zone.
func (z Times) Instant(t time.Time) string { return z.in(t).Format("2006-01-02 15:04:05.000") }
