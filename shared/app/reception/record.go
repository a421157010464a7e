package reception

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// tries limits how often a change of the recorded reception is tried again after a conflict.
const tries = 10

// Receive records a canary that was received at a time. gap is that of Gap. Fault: Unavailable
// after too many conflicts. After any error the canary is not stored.
func Receive(ctx context.Context, store port.ReceptionStore, at time.Time, gap time.Duration) error {
	var err error
	for range tries {
		var before port.Reception
		if before, err = store.Reception(ctx); err != nil {
			break
		}
		err = store.RecordReception(ctx, before, received(before, at, gap))
		if !errors.Is(err, port.ErrConflict) {
			break
		}
	}
	if errors.Is(err, port.ErrConflict) {
		return fault.New(fault.Unavailable, "too many concurrent canaries; retry")
	}
	if err != nil {
		return fmt.Errorf("cannot record the canary: %w", err)
	}
	return nil
}

// received returns the record after a canary that was received at a time. It starts a
// new series after a gap, and if a clock was set back.
func received(before port.Reception, at time.Time, gap time.Duration) port.Reception {
	age := at.Sub(before.At)
	if before.Since.IsZero() || age > gap || age < -gap {
		before.Since, before.At = at, at
		return before
	}
	before.At = before.At.Add(max(age, 0))
	return before
}

// Count records whether more than most attempts run, so that heartbeats are not forwarded. They
// are forwarded again once at most four fifths of most run. nil means no limit.
func (s *Prober) Count(ctx context.Context, running int, most *int) error {
	if most == nil {
		return nil
	}
	var err error
	for range tries {
		var before port.Reception
		if before, err = s.store.Reception(ctx); err != nil {
			break
		}
		after := before
		after.Crowded = running > *most || before.Crowded && running > *most*4/5
		if after == before {
			return nil
		}
		err = s.store.RecordReception(ctx, before, after)
		if !errors.Is(err, port.ErrConflict) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("cannot record the number of running attempts: %w", err)
	}
	return nil
}
