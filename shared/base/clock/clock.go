// Package clock declares the Clock interface that every component uses. It implements the
// system clock and a virtual clock for tests.
package clock

import (
	"context"
	"time"
)

// Clock returns the time and creates timers. It is safe for concurrent use. Now never goes
// back, unless the host's clock is set back.
type Clock interface {
	Now() time.Time
	// NewTimer returns a channel that receives the time once, after d, or at once if
	// d <= 0. stop releases the timer and may be called at any time.
	NewTimer(d time.Duration) (fired <-chan time.Time, stop func())
}

// UTC returns the time of c without its monotonic part, so that it can be compared with stored
// times.
func UTC(c Clock) time.Time { return c.Now().UTC().Round(0) }

// Sleep waits for d. If ctx ends first, it returns the error of ctx.
func Sleep(ctx context.Context, clock Clock, d time.Duration) error {
	fired, stop := clock.NewTimer(d)
	defer stop()
	select {
	case <-fired:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
