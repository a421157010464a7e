package activity

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/activity"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Figures are the runs of a tenant in a window.
type Figures struct {
	Window activity.Window
	// Slots are all slots of the window, the oldest first.
	Slots []activity.Slot
	// Until is the time of the last event that is counted, or now if all are.
	Until time.Time
	// Since is the time from which events are counted, if that is within the window; otherwise
	// zero.
	Since time.Time
	// Whole reports that all events of the window are counted.
	Whole bool
}

const (
	// uncounted is the largest number of events that a read counts by itself.
	uncounted = 2 * page
	// reads is the number of concurrent reads.
	reads = 8
	// tries limits the reads that a sweep makes inconsistent.
	tries = 4
)

// Figures returns the figures of the caller's tenant in a window. It reads the slots of the
// window and at most uncounted events. Fault: InvalidRequest for an unknown window.
func (s *Tally) Figures(ctx context.Context, who port.Identity, window string) (Figures, error) {
	w, ok := activity.WindowOf(window)
	if !ok {
		return Figures{}, fault.Invalid("window", "unknown window, want 1h, 24h or 7d")
	}
	for range tries {
		f, changed, err := s.figures(ctx, who.Tenant, w)
		if err != nil || !changed {
			return f, err
		}
	}
	return Figures{}, fault.New(fault.Unavailable, "the figures of runs change too often; retry")
}

// figures reads the figures once. changed reports that a sweep has counted events meanwhile, so
// that the figures are wrong.
func (s *Tally) figures(ctx context.Context, tenant string, w activity.Window) (f Figures, changed bool, err error) {
	now := clock.UTC(s.clock)
	c, err := s.open(ctx, tenant)
	if err != nil {
		return f, false, err
	}
	starts := w.Starts(now)
	if err := c.readAll(ctx, w, starts); err != nil {
		return f, false, err
	}
	var again state
	r, err := s.load(ctx, tenant, stateID, &again)
	if err != nil || r.Version != c.stored.Version {
		return f, true, err
	}
	f = Figures{Window: w, Until: now, Slots: make([]activity.Slot, len(starts))}
	if err := c.countSome(ctx, []activity.Window{w}, uncounted); err != nil {
		return f, false, err
	}
	if c.state.Position < c.head.Newest {
		f.Until = c.last
	}
	if c.state.Since.After(starts[0]) {
		f.Since = c.state.Since
	}
	f.Whole = f.Since.IsZero() && c.state.Position >= c.head.Newest
	for i, start := range starts {
		f.Slots[i] = activity.Slot{From: start}
		if s := c.slots[w.Key(start)]; s != nil && s.slot.From.Equal(start) {
			f.Slots[i] = s.slot
		}
	}
	return f, false, nil
}

// readAll reads the slots that start at the times.
func (c *count) readAll(ctx context.Context, w activity.Window, starts []time.Time) error {
	found := make([]*stored, len(starts))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reads)
	for i, start := range starts {
		group.Go(func() (err error) {
			found[i] = &stored{}
			found[i].resource, err = c.load(ctx, c.tenant, w.Key(start), &found[i].slot)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("cannot read a slot: %w", err)
	}
	for i, start := range starts {
		c.slots[w.Key(start)] = found[i]
	}
	return nil
}
