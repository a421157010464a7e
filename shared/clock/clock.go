// Package clock declares the Clock that every component takes, the host's clock,
// and a clock that tests advance.
package clock

import (
	"context"
	"time"
)

// Clock tells the time and wakes its caller. It may be called from anywhere at
// once. Now never goes back by itself, but a host's clock may be set.
type Clock interface {
	Now() time.Time
	// NewTimer sends the time on the channel once, when d has passed; d <= 0
	// is at once. stop gives the timer up; it may be called at any time.
	NewTimer(d time.Duration) (fired <-chan time.Time, stop func())
}

// Sleep waits until d has passed by the clock, or until the end of ctx, whose
// error it gives then.
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
