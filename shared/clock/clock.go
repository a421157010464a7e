// Package clock declares the Clock that every component uses, the system clock,
// and a clock for tests.
package clock

import (
	"context"
	"time"
)

// Clock returns the time and creates timers. It is safe for concurrent use. Now
// may go back only if the host's clock is set.
type Clock interface {
	Now() time.Time
	// NewTimer returns a channel that receives the time once, after d; at once
	// if d <= 0. stop releases the timer and may be called at any time.
	NewTimer(d time.Duration) (fired <-chan time.Time, stop func())
}

// Sleep waits for d, or returns the error of ctx when that ends first.
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
