package activity

import (
	"context"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/activity"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Figures are the runs of a tenant in a window. They share memory with later ones: read only.
type Figures struct {
	Window activity.Window
	// Slots are all slots of the window, the oldest first.
	Slots []activity.Slot
	// Total has the figures of all slots together.
	Total activity.Slot
	// Until is the time up to which events are counted, or now if all are.
	Until time.Time
	// Since is the time from which events are counted, if that is within the window; otherwise
	// zero.
	Since time.Time
	// Whole reports that all events of the window are counted.
	Whole bool
}

const (
	// uncounted is the largest number of events that a read counts by itself. If there are more,
	// it counts none: the figures would lack events anyway.
	uncounted = 2 * page
	// reads is the number of concurrent reads.
	reads = 8
	// tries limits the reads that a sweep makes inconsistent.
	tries = 4
)

// Figures returns the figures of the caller's tenant in a window. It reads at most uncounted
// events, and the slots of the window if a sweep has counted events since the last call. Fault:
// InvalidRequest for an unknown window.
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
	before := s.recent.get(tenant, w)
	if before.matches(c) {
		c.state, c.slots = before.state, maps.Clone(before.slots)
	} else if changed, err = c.readAll(ctx, w, starts, before); err != nil || changed {
		return f, changed, err
	}
	until, err := c.countRest(ctx, w)
	if err != nil {
		return f, false, err
	}
	f = before.figures
	if !before.matches(c) || c.state.Position != before.state.Position || !f.Slots[0].From.Equal(starts[0]) {
		f = c.figures(w, starts)
		s.recent.put(tenant, w, c, f)
	}
	if f.Until = until; until.IsZero() {
		f.Until = now
	}
	f.Whole = f.Since.IsZero() && until.IsZero()
	return f, false, nil
}

// countRest counts the events that are not counted yet. If there are too many, it returns the time
// of the first of them.
func (c *count) countRest(ctx context.Context, w activity.Window) (until time.Time, err error) {
	if c.head.Newest-c.state.Position <= uncounted {
		return time.Time{}, c.countSome(ctx, []activity.Window{w}, uncounted)
	}
	next, err := c.feed.Read(ctx, port.EventStream(c.tenant), c.state.Position, 1)
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot read the events: %w", err)
	}
	if len(next) == 0 { // all have expired
		return time.Time{}, nil
	}
	return next[0].At, nil
}

// figures returns the figures of the slots that start at the times.
func (c *count) figures(w activity.Window, starts []time.Time) Figures {
	f := Figures{Window: w, Slots: make([]activity.Slot, len(starts))}
	if c.state.Since.After(starts[0]) {
		f.Since = c.state.Since
	}
	for i, start := range starts {
		f.Slots[i] = activity.Slot{From: start}
		if s := c.slots[w.Key(start)]; s != nil && s.slot.From.Equal(start) {
			f.Slots[i] = s.slot
		}
	}
	f.Total = activity.Total(f.Slots)
	return f
}

// readAll reads the slots that start at the times. It decodes only those that differ from the ones
// before. changed reports that a sweep has counted events meanwhile.
func (c *count) readAll(ctx context.Context, w activity.Window, starts []time.Time, before known) (changed bool, err error) {
	found := make([]*stored, len(starts))
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(reads)
	for i, start := range starts {
		group.Go(func() (err error) {
			found[i], err = c.read(reading, w.Key(start), before.slots[w.Key(start)])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return false, fmt.Errorf("cannot read a slot: %w", err)
	}
	for i, start := range starts {
		c.slots[w.Key(start)] = found[i]
	}
	var again state
	r, err := c.load(ctx, c.tenant, stateID, &again)
	return err == nil && r.Version != c.stored.Version, err
}

// read reads the slot with a key, unless the stored one is that before without further events.
func (c *count) read(ctx context.Context, key string, before *stored) (*stored, error) {
	r, err := c.resource(ctx, c.tenant, key)
	if err != nil {
		return nil, err
	}
	if before != nil && !before.changed && before.resource.Version == r.Version {
		return before, nil
	}
	s := &stored{resource: r}
	if r.Version > 0 {
		err = decode(r, &s.slot)
	}
	return s, err
}
