// Package clock declares the Clock that every component takes, the host's clock,
// and a clock that tests advance.
package clock

import (
	"context"
	"time"
)

// Clock returns the time and creates timers. It is safe for concurrent use. Now
// does not go back by itself, but a host's clock may be set.
type Clock interface {
	Now() time.Time
	// NewTimer returns a channel that receives the time once, after d; d <= 0
	// fires at once. stop cancels the timer and may be called at any time.
	NewTimer(d time.Duration) (fired <-chan time.Time, stop func())
}

// Sleep waits for d by the clock. It returns the error of ctx if ctx ends
// first.
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
