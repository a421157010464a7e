package mockengine

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// limits are those of a generation, and since when they count.
type limits struct {
	clock       clock.Clock
	of          port.GenerationLimits
	start, last time.Time
	begun       bool
}

func newLimits(c clock.Clock, of port.GenerationLimits) *limits {
	now := c.Now()
	return &limits{clock: c, of: of, start: now, last: now}
}

// piece records that one was sent.
func (l *limits) piece() { l.last, l.begun = l.clock.Now(), true }

// wait waits for d, or returns a DecodeTimeout at the first limit.
func (l *limits) wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d == 0 {
		return nil
	}
	until, limit := l.clock.Now().Add(d), time.Duration(0)
	of := l.of.First
	if l.begun {
		of = l.of.Gap
	}
	if at := l.last.Add(of); of > 0 && at.Before(until) {
		until, limit = at, of
	}
	if at := l.start.Add(l.of.Total); l.of.Total > 0 && at.Before(until) {
		until, limit = at, l.of.Total
	}
	if err := clock.Sleep(ctx, l.clock, until.Sub(l.clock.Now())); err != nil {
		return err
	}
	if limit > 0 {
		return fault.New(fault.DecodeTimeout, "the engine sent nothing within %s", limit)
	}
	return nil
}
