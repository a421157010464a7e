package orchestrator

import "time"

// Clock tells the time and wakes its caller. It may be called from anywhere at
// once. Now never goes back by itself, but a host's clock may be set.
type Clock interface {
	Now() time.Time
	// NewTimer sends the time on the channel once, when d has passed; d <= 0
	// is at once. stop gives the timer up; it may be called at any time.
	NewTimer(d time.Duration) (fired <-chan time.Time, stop func())
}
