package mockengine

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// limits has the limits of a generation and the times from which they count.
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

// piece records that a piece was sent.
func (l *limits) piece() { l.last, l.begun = l.clock.Now(), true }

// wait waits for d. It returns a DecodeTimeout at the first limit.
func (l *limits) wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d == 0 {
		return nil
	}
	until, passed := l.clock.Now().Add(d), ""
	of, said := l.of.First, "sent nothing within "
	if l.begun {
		of, said = l.of.Gap, "sent nothing for "
	}
	if at := l.last.Add(of); of > 0 && at.Before(until) {
		until, passed = at, said+of.String()
	}
	if at := l.start.Add(l.of.Total); l.of.Total > 0 && at.Before(until) {
		until, passed = at, "did not finish within "+l.of.Total.String()
	}
	if err := clock.Sleep(ctx, l.clock, until.Sub(l.clock.Now())); err != nil {
		return err
	}
	if passed != "" {
		return fault.New(fault.DecodeTimeout, "the engine %s", passed)
	}
	return nil
}
