package pools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/usage"
	"github.com/sortie-dev/sortie/shared/port"
)

// This file has pools that their owner offers to other tenants, and the pools of these guests.

// Guest is a guest of an offered pool, with its use of the pool. The owner sees no tasks of it.
type Guest struct {
	platform.Offer
	// Accepted: the guest has a pool that uses the offer.
	Accepted bool
	// Held and Queued count the guest's tasks with a slot and in its queue.
	Held, Queued int
	// Used is what the tasks that were admitted on the day have used.
	Used budget.Amount
}

// Guests returns the guests to whom a pool is offered, with what their tasks of a day in UTC have used;
// an empty day is today. Faults: NotFound, InvalidRequest with the field day.
func (s *Pools) Guests(ctx context.Context, who port.Identity, id, day string) (found []Guest, of string, err error) {
	at := s.now()
	if day != "" {
		if at, err = usage.ParseDay(day); err != nil {
			return nil, "", fault.Invalid("day", "malformed day %q, want a day in UTC such as 2026-11-29", limit.Cut(day, limit.FileName))
		}
	}
	p, err := s.stored(ctx, who, id)
	if err != nil {
		return nil, "", err
	}
	if p.Sharing == nil {
		return nil, usage.DayOf(at), nil
	}
	for _, o := range p.Sharing.Offers {
		g, err := s.guest(ctx, p.Ref(), o, at)
		if err != nil {
			return nil, "", err
		}
		found = append(found, g)
	}
	return found, usage.DayOf(at), nil
}

// guest returns a guest of a pool.
func (s *common) guest(ctx context.Context, owner platform.PoolRef, o platform.Offer, at time.Time) (g Guest, err error) {
	g.Offer = o
	guest, err := s.capacity.Pools.Read(ctx, o.Guest())
	switch {
	case errors.Is(err, port.ErrNotFound), err == nil && (guest.Origin == nil || guest.Home() != owner):
		return g, nil
	case err != nil:
		return g, err
	}
	g.Accepted = true
	if g.Held, g.Queued, err = s.usedSlots(ctx, o.Guest()); err != nil {
		return g, err
	}
	account, err := s.store.Account(ctx, o.Tenant, budget.OfferScope(owner.Tenant, owner.ID, at))
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		return g, fmt.Errorf("cannot read the usage of a guest: %w", err)
	}
	g.Used = account.Spent
	return g, nil
}

// usedSlots returns the number of runs with a slot of a pool, and in its queue.
func (s *common) usedSlots(ctx context.Context, of platform.PoolRef) (held, queued int, err error) {
	holders, err := s.store.Holders(ctx, of.Tenant, of.ID, limit.PoolSlots)
	if err != nil {
		return 0, 0, fmt.Errorf("cannot count the slots of pool %s: %w", of.ID, err)
	}
	if queued, err = s.store.QueueLength(ctx, of.Tenant, of.ID, limit.PoolQueue); err != nil {
		return 0, 0, fmt.Errorf("cannot count the queue of pool %s: %w", of.ID, err)
	}
	return len(holders), queued, nil
}

// unusedByGuests returns a fault if a task of a guest has a slot of the pool or waits for one.
func (s *common) unusedByGuests(ctx context.Context, p platform.Pool) error {
	if p.Sharing == nil {
		return nil
	}
	for _, o := range p.Sharing.Offers {
		g, err := s.guest(ctx, p.Ref(), o, s.now())
		if err != nil {
			return err
		}
		if g.Held+g.Queued > 0 {
			return fault.New(fault.PoolInUse, "%d tasks of the tenant %s use the pool; want a pool without tasks that have not ended", g.Held+g.Queued, o.Tenant)
		}
	}
	return nil
}

// checkSharing returns the faults of the offers of a pool, and of its origin.
func (s *common) checkSharing(ctx context.Context, who port.Identity, id string, d Definition) (found []*fault.Fault, err error) {
	if d.Sharing != nil {
		if d.Engine == nil {
			found = append(found, fault.Invalid("sharing", "the pool has no engine of its own, want one to offer"))
		}
		found = append(found, platform.CheckSharing(platform.PoolRef{Tenant: who.Tenant, ID: id}, *d.Sharing)...)
	}
	if d.Origin == nil {
		return found, nil
	}
	for _, other := range []struct {
		field string
		given bool
	}{
		{"engine", d.Engine != nil},
		{"runner", d.Placement.Runner != ""},
		{"warm", d.Warm != nil},
		{"fallback", len(d.Fallbacks) > 0},
		{"limit", d.Limit != 0},
	} {
		if other.given {
			found = append(found, fault.Invalid(other.field, "the pool of another tenant has its own, want no %s with from", other.field))
		}
	}
	if id == s.capacity.Pools.Standard().ID {
		found = append(found, fault.Invalid("from", "the pool %s is the default of every job, want another pool", id))
	}
	owner, err := s.capacity.Pools.Read(ctx, platform.PoolRef{Tenant: d.Origin.Tenant, ID: d.Origin.Pool})
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		return nil, err
	}
	if _, ok := owner.OfferTo(platform.PoolRef{Tenant: who.Tenant, ID: id}); !ok {
		f := fault.New(fault.Unprocessable, "the tenant %q offers no pool %q that this tenant may use as %s",
			limit.Cut(d.Origin.Tenant, limit.FileName), limit.Cut(d.Origin.Pool, limit.FileName), id)
		f.Field = "from"
		return append(found, f), nil
	}
	d.Origin.Kind, d.Origin.Model = owner.Engine.Kind, owner.Engine.Model
	return found, nil
}
