package clock

import "time"

// System is the clock of the host. The zero value is ready to use.
type System struct{}

// Now returns time.Now in UTC.
func (System) Now() time.Time { return time.Now().UTC() }

// NewTimer wraps time.NewTimer.
func (System) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
