// Package activity counts the runs of tenants by the events in their streams, and serves the
// figures. A sweep counts the events of each minute in one write, so a run costs no write of its
// own. A read adds the events that no sweep has counted yet. The package imports no other use
// case.
package activity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/activity"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Store stores the figures, as resources, and the budgets.
type Store interface {
	WriteResources(ctx context.Context, save, remove []port.Resource, notes ...port.Note) error
	LoadResource(ctx context.Context, ref port.ResourceRef) (port.Resource, error)
	Account(ctx context.Context, tenant, scope string) (budget.Account, error)
}

// Feed has the streams of events.
type Feed interface {
	Head(ctx context.Context, stream string) (port.Head, error)
	Read(ctx context.Context, stream string, after int64, limit int) ([]port.FeedRecord, error)
}

// Tally counts the runs of tenants. It is safe for concurrent use, by any number of processes:
// the position in the stream is committed with the figures, so each event counts once.
type Tally struct {
	store Store
	feed  Feed
	clock clock.Clock
	log   *slog.Logger
	// recent has what was read last.
	recent recent
}

// NewTally returns a Tally of the streams in a feed.
func NewTally(store Store, feed Feed, c clock.Clock, log *slog.Logger) *Tally {
	return &Tally{store: store, feed: feed, clock: c, log: log}
}

const (
	// kind is the kind of the resources. stateID is the id of the one with the position; the ids
	// of the others are keys of slots.
	kind    = "activity"
	stateID = "state"
	// page is the number of events that are read together. A round of pages is one write.
	page   = port.MaxFeedRecords
	pages  = 5
	rounds = 20
	// mostSlots is the number of slots after which a round ends.
	mostSlots = port.MaxResources - 10
)

// state is how far the events of a tenant are counted.
type state struct {
	Epoch    string `json:"epoch"`
	Position int64  `json:"position"`
	// Since is the time before which events were not counted; zero if all were.
	Since time.Time `json:"since,omitzero"`
}

// Count counts the new events of a tenant, a bounded number of them: a sweep continues. It
// returns nil if another process counts them at the same time.
func (s *Tally) Count(ctx context.Context, tenant string) error {
	for range rounds {
		c, err := s.open(ctx, tenant)
		if err != nil || c.state.Position >= c.head.Newest {
			return err
		}
		if err := c.countSome(ctx, activity.Windows(), pages*page); err != nil {
			return err
		}
		if err := c.addSpent(ctx); err != nil {
			return err
		}
		if err := c.save(ctx); errors.Is(err, port.ErrConflict) {
			return nil
		} else if err != nil {
			return fmt.Errorf("cannot store the figures of runs: %w", err)
		}
	}
	return nil
}

// Position returns the position up to which the events of a tenant are counted.
func (s *Tally) Position(ctx context.Context, tenant string) (int64, error) {
	c, err := s.open(ctx, tenant)
	return c.state.Position, err
}

// count is one round.
type count struct {
	*Tally
	tenant string
	head   port.Head
	stored port.Resource // of the state
	state  state
	// last is the time of the last event that was counted.
	last time.Time
	// spends reports that an inference task has ended.
	spends bool
	// slots are those that were read, by their keys.
	slots map[string]*stored
}

// stored is a slot and its resource. A shared one never changes.
type stored struct {
	resource        port.Resource
	slot            activity.Slot
	changed, shared bool
}

func (s *Tally) open(ctx context.Context, tenant string) (c count, err error) {
	c = count{Tally: s, tenant: tenant, slots: map[string]*stored{}}
	if c.head, err = s.feed.Head(ctx, port.EventStream(tenant)); err != nil {
		return c, fmt.Errorf("cannot read the head of the stream: %w", err)
	}
	if c.stored, err = s.load(ctx, tenant, stateID, &c.state); err != nil {
		return c, err
	}
	if c.state.Epoch != c.head.Epoch { // a new stream, or one that was lost and begun again
		c.state = state{Epoch: c.head.Epoch, Since: c.state.Since}
	}
	return c, nil
}

// load reads a resource and decodes it. It is new if it is not stored.
func (s *Tally) load(ctx context.Context, tenant, id string, into any) (port.Resource, error) {
	r, err := s.resource(ctx, tenant, id)
	if err == nil && r.Version > 0 {
		err = decode(r, into)
	}
	return r, err
}

func (s *Tally) resource(ctx context.Context, tenant, id string) (port.Resource, error) {
	ref := port.ResourceRef{Tenant: tenant, Kind: kind, ID: id}
	r, err := s.store.LoadResource(ctx, ref)
	if errors.Is(err, port.ErrNotFound) {
		return port.Resource{ResourceRef: ref, CreatedAt: clock.UTC(s.clock)}, nil
	}
	if err != nil {
		return r, fmt.Errorf("cannot read the figures of runs: %w", err)
	}
	return r, nil
}

func decode(r port.Resource, into any) error {
	if err := json.Unmarshal(r.Document, into); err != nil {
		return fault.Wrap(err, fault.Internal, "unreadable figures of runs")
	}
	return nil
}

// countSome adds at most most events to the slots of windows, without storing them.
func (c *count) countSome(ctx context.Context, windows []activity.Window, most int) error {
	for n := 0; n < most && c.state.Position < c.head.Newest && len(c.slots) < mostSlots; {
		records, err := c.feed.Read(ctx, port.EventStream(c.tenant), c.state.Position, min(page, most-n))
		if err != nil {
			return fmt.Errorf("cannot read the events: %w", err)
		}
		if len(records) == 0 { // all have expired
			c.state.Position, c.state.Since = c.head.Newest, clock.UTC(c.clock)
			return nil
		}
		for _, r := range records {
			if r.Position > c.state.Position+1 {
				c.state.Since = r.At
			}
			if err := c.add(ctx, windows, r); err != nil {
				return err
			}
			c.state.Position, c.last = r.Position, r.At
			if n++; len(c.slots) >= mostSlots {
				break
			}
		}
	}
	return nil
}

// add counts a record in its slots.
func (c *count) add(ctx context.Context, windows []activity.Window, r port.FeedRecord) error {
	payload, err := events.Payload(r.Data)
	var e activity.Entry
	ok := false
	if err == nil {
		e, ok, err = activity.Parse(payload)
	}
	if err != nil {
		c.log.ErrorContext(ctx, "cannot read an event; it is not counted", "tenant", c.tenant, "position", r.Position, "error", err.Error())
		return nil
	}
	if !ok {
		return nil
	}
	c.spends = c.spends || e.Spends()
	for _, w := range windows {
		start := w.Begin(e.CreatedAt)
		if start.Before(w.Starts(c.clock.Now())[0]) {
			continue
		}
		s, err := c.slot(ctx, w, start)
		if err != nil {
			return err
		}
		if s.shared {
			s = &stored{resource: s.resource, slot: s.slot.Clone(), changed: s.changed}
			c.slots[w.Key(start)] = s
		}
		if s.begin(start) {
			s.slot.Count(e)
			s.changed = true
		}
	}
	return nil
}

// begin replaces an earlier slot by that of a start. It returns false for a later one.
func (s *stored) begin(start time.Time) bool {
	if s.slot.From.Before(start) {
		s.slot = activity.Slot{From: start}
	}
	return s.slot.From.Equal(start)
}

// tenantScope is the scope of the budget of a tenant.
const tenantScope = "tenant"

// addSpent adds what the budget of the tenant has spent to the current slots.
func (c *count) addSpent(ctx context.Context) error {
	if !c.spends {
		return nil
	}
	account, err := c.store.Account(ctx, c.tenant, tenantScope)
	if errors.Is(err, port.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the budget: %w", err)
	}
	for _, w := range activity.Windows() {
		start := w.Begin(c.clock.Now())
		s, err := c.slot(ctx, w, start)
		if err != nil {
			return err
		}
		if s.begin(start) {
			s.slot.Spent, s.changed = &account.Spent, true
		}
	}
	return nil
}

// slot reads the slot with the key of a start, once.
func (c *count) slot(ctx context.Context, w activity.Window, start time.Time) (*stored, error) {
	key := w.Key(start)
	if s := c.slots[key]; s != nil {
		return s, nil
	}
	s := &stored{}
	var err error
	if s.resource, err = c.load(ctx, c.tenant, key, &s.slot); err != nil {
		return nil, err
	}
	c.slots[key] = s
	return s, nil
}

// save stores the changed slots with the position.
func (c *count) save(ctx context.Context) error {
	var save []port.Resource
	put := func(r port.Resource, content any) (err error) {
		if r.Document, err = json.Marshal(content); err != nil {
			return fault.Wrap(err, fault.Internal, "cannot encode the figures of runs")
		}
		save = append(save, r)
		return nil
	}
	for _, s := range c.slots {
		if !s.changed {
			continue
		}
		if err := put(s.resource, s.slot); err != nil {
			return err
		}
	}
	slices.SortFunc(save, func(a, b port.Resource) int { return strings.Compare(a.ID, b.ID) })
	if err := put(c.stored, c.state); err != nil {
		return err
	}
	return c.store.WriteResources(ctx, save, nil)
}
