package delivery

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
)

// Relay appends the events of changes to the streams of their tenants, and writes checkpoints.
// Several relays may handle the same changes at the same time: a stream gets each event once,
// and the events of a change in order.
type Relay struct {
	feed   port.Feed
	keys   port.EventKeys
	clock  clock.Clock
	log    *slog.Logger
	as     Published
	record series.Recorder
	turns  TurnTaking
	// settled reports that no change in the outbox has events in its stream, except for late
	// changes; see tenantEvents.late.
	settled atomic.Bool
}

// Published creates the events of changes in their published form.
type Published struct {
	// Events returns the events of a change, without a notifier. It is deterministic.
	Events func(c port.Change) ([]events.Envelope, error)
	// Unreadable returns the event that replaces the events of an unreadable change.
	Unreadable func(tenant, changeID string, at time.Time) events.Envelope
	// Bare reports that events are stored without a DSSE envelope: the processes that read them
	// have the key and sign those that they publish. Checkpoints prove all events.
	Bare bool
}

// NewRelay returns a Relay to a feed. turns serializes it with the relays of other processes.
// record gets the samples of appended events.
func NewRelay(
	feed port.Feed, keys port.EventKeys, turns TurnTaking, c clock.Clock, log *slog.Logger, as Published, record series.Recorder,
) *Relay {
	return &Relay{feed: feed, keys: keys, clock: c, log: log, as: as, record: record, turns: turns}
}

// Change is one commit, as the store's stream or the outbox delivers it.
type Change struct {
	// ID identifies the change.
	ID string
	// At is the time at which the store's stream received the change; zero if it is unknown.
	At time.Time
	port.Change
	// Err is the error of an unreadable change. Such a change has only its tenant, in Run, if
	// the tenant is known.
	Err error
}

// Relayed is the result of a Relay. It names changes by their ids, in order.
type Relayed struct {
	// Redeliver are the changes to deliver again, with all changes after the first of them.
	// SetAside are the changes to set aside. They are unreadable or refused permanently, the
	// store's stream would soon lose them, or they would delay the changes of other tenants.
	Redeliver, SetAside []string
	// Unreadable are those of SetAside that cannot be read.
	Unreadable []string
	// Tenants are those whose streams may have new events.
	Tenants []string
	// Events is the number of events that are now in their streams.
	Events int

	// removed are the changes that left the outbox in the commit that appended their events.
	// apart reports that events were appended in a commit of their own.
	removed []string
	apart   bool
}

const (
	// setAsideAfter is the age at which a change is set aside even if the feed is only
	// unavailable. The store's stream deletes a change after a day.
	setAsideAfter = 20 * time.Hour
	// holdUp is the age at which a change is set aside if the streams of other tenants work.
	// Until then the store's stream delivers no change after it. Later changes of its tenant
	// are then appended before it.
	holdUp = 15 * time.Minute
	// relayTenants is the number of streams to which one call writes at the same time.
	relayTenants = 8
)

// Relay appends the events of changes. The changes of a tenant are handled up to the first that
// fails; those of other tenants are not affected. A change that cannot be read becomes the
// event relay.unreadable in the stream of its tenant.
func (s *Relay) Relay(ctx context.Context, changes []Change) Relayed {
	return s.relay(ctx, changes, nil)
}

// relay is Relay for the changes of an outbox. If possible, a change leaves the outbox in the
// commit that appends its events. outbox is nil without one.
func (s *Relay) relay(ctx context.Context, changes []Change, outbox port.CommitOutbox) Relayed {
	var done Relayed
	tenants, unreadable := s.eventsByTenant(ctx, changes)
	done.Tenants = slices.Sorted(maps.Keys(tenants))
	for _, t := range tenants {
		t.outbox = outbox
	}
	s.appendAll(ctx, tenants)
	lost, forGood, works := make([]bool, len(changes)), make([]bool, len(changes)), len(tenants) == 0
	for _, t := range tenants {
		done.Events += t.done
		done.removed, done.apart = append(done.removed, t.removed...), done.apart || t.apart
		works = works || t.err == nil
		for _, e := range t.entries[t.done:] {
			lost[e.change] = true
			forGood[e.change] = !fault.Is(t.err, fault.Unavailable) && !fault.Is(t.err, fault.StoreFull)
		}
	}
	now := s.clock.Now()
	for i, c := range changes {
		late := func(age time.Duration) bool { return !c.At.IsZero() && now.Sub(c.At) >= age }
		switch {
		case unreadable[i]:
			done.SetAside, done.Unreadable = append(done.SetAside, c.ID), append(done.Unreadable, c.ID)
		case lost[i] && (forGood[i] || late(setAsideAfter) || works && late(holdUp)):
			done.SetAside = append(done.SetAside, c.ID)
		case lost[i]:
			done.Redeliver = append(done.Redeliver, c.ID)
		}
	}
	return done
}

// eventsByTenant groups the events of changes by tenant. unreadable reports for each change
// whether it cannot be read.
func (s *Relay) eventsByTenant(ctx context.Context, changes []Change) (tenants map[string]*tenantEvents, unreadable []bool) {
	tenants, unreadable = map[string]*tenantEvents{}, make([]bool, len(changes))
	ids := func(change int) string { return changes[change].ID }
	of := func(tenant string) *tenantEvents {
		t := tenants[tenant]
		if t == nil {
			t = &tenantEvents{tenant: tenant, ids: ids, late: map[int]bool{}, appended: map[string]bool{}}
			tenants[tenant] = t
		}
		return t
	}
	for i, c := range changes {
		if c.Err == nil && len(c.Encoded) > 0 {
			t := of(c.Run.Tenant)
			for _, r := range c.Encoded {
				t.entries = append(t.entries, entry{change: i, payload: r.Data, record: r})
			}
			continue
		}
		all, err := s.eventsOf(c)
		if err != nil {
			unreadable[i] = true
			s.log.ErrorContext(ctx, "cannot read a change of the store; its events are set aside",
				"change", c.ID, "tenant", c.Run.Tenant, "error", err.Error())
		}
		late := err != nil || slices.ContainsFunc(all, func(e events.Envelope) bool { return e.TenantID != all[0].TenantID })
		for _, e := range all {
			t := of(e.TenantID)
			if t.entries = append(t.entries, entry{change: i, event: e}); late {
				t.late[i] = true
			}
		}
	}
	return tenants, unreadable
}

// eventsOf returns the events of a change. For an unreadable change it returns an error and, if
// its tenant is known, the event that replaces its events.
func (s *Relay) eventsOf(c Change) ([]events.Envelope, error) {
	err := c.Err
	if err == nil {
		var all []events.Envelope
		if all, err = s.as.Events(c.Change); err == nil {
			return all, nil
		}
	}
	tenant := c.Run.Tenant
	for _, n := range c.Notes {
		tenant = n.Tenant
	}
	if tenant == "" || c.At.IsZero() {
		return nil, err
	}
	return []events.Envelope{s.as.Unreadable(tenant, c.ID, c.At)}, err
}

// appendAll appends the events of tenants to their streams, relayTenants at a time.
func (s *Relay) appendAll(ctx context.Context, tenants map[string]*tenantEvents) {
	if len(tenants) == 0 {
		return
	}
	key, err := s.keys.Signing(ctx)
	var all sync.WaitGroup
	free := make(chan struct{}, relayTenants)
	for _, t := range tenants {
		if t.err = err; err != nil {
			continue
		}
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			t.err = s.append(ctx, key, t)
		})
	}
	all.Wait()
	for _, t := range tenants {
		if t.err != nil && !errors.Is(ctx.Err(), context.Canceled) { // after a stop, the next start relays the rest
			s.log.ErrorContext(ctx, "cannot append events", "tenant", t.tenant, "events", len(t.entries)-t.done, "error", t.err.Error())
		}
	}
}
