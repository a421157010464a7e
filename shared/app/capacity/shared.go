package capacity

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// This file has the pools that share their slots: the pool of an owner, and the pools of the guests
// to whom it is offered. Each of them has leases and a queue of its own.

// Hosted returns a guest's pool with the engine and the slots that its owner offers. It returns other pools
// unchanged.
func (p *Pools) Hosted(ctx context.Context, of platform.Pool) (platform.Pool, error) {
	if of.Origin == nil {
		return of, nil
	}
	home := of.Home()
	owner, err := p.record(ctx, home)
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		return of, err
	}
	return of.HostedBy(owner), nil
}

// ForAdmission returns the pool of a run as its slots are granted now; see ForRun. A pool that shares its
// slots has its share as the limit, and is returned as draining while it has no free slot.
func (p *Pools) ForAdmission(ctx context.Context, tenant, name string) (platform.Pool, error) {
	of, err := p.ForRun(ctx, tenant, name)
	if err != nil || of.Draining || of.Engine == nil || of.Limit == 0 || of.Origin == nil && of.Sharing == nil {
		return of, err
	}
	owner := of
	if of.Origin != nil {
		if owner, err = p.record(ctx, of.Home()); err != nil || owner.Sharing == nil {
			return of, err
		}
	}
	return p.shareOf(ctx, of, owner)
}

// shareOf returns a pool that shares the slots of an owner's pool with its share as the limit.
func (p *Pools) shareOf(ctx context.Context, of, owner platform.Pool) (platform.Pool, error) {
	members := []platform.PoolRef{owner.Ref()}
	claims := []platform.Claim{{Weight: owner.Sharing.Weight, Wants: owner.Limit}}
	for _, o := range owner.Sharing.Offers {
		members, claims = append(members, o.Guest()), append(claims, platform.Claim{Weight: o.Weight, Wants: min(o.Slots, owner.Limit)})
	}
	state, used, mine, held := fnv.New64a(), 0, 0, 0
	for i, ref := range members {
		holders, err := p.store.Holders(ctx, ref.Tenant, ref.ID, owner.Limit)
		if err != nil {
			return of, fmt.Errorf("cannot count the slots of pool %s: %w", ref.ID, err)
		}
		queued, err := p.store.Queue(ctx, ref.Tenant, ref.ID, max(claims[i].Wants-len(holders), 1))
		if err != nil {
			return of, fmt.Errorf("cannot read the queue of pool %s: %w", ref.ID, err)
		}
		wants := len(holders) + len(queued)
		if used += len(holders); ref == of.Ref() {
			mine, held, wants = i, len(holders), wants+1
		}
		claims[i].Wants = min(claims[i].Wants, wants)
		note(state.Write, holders)
		note(state.Write, queued[:min(len(queued), 1)])
	}
	share := platform.Shares(owner.Limit, claims, state.Sum64())[mine]
	of.Draining = used >= owner.Limit || held >= share
	of.Limit = max(share, 1)
	return of, nil
}

// note adds the ids of runs to a hash.
func note(write func([]byte) (int, error), refs []run.Ref) {
	for _, ref := range refs {
		_, _ = write([]byte(ref.ID)) // a hash returns no error
	}
}

// Sharing returns the other pools that share the slots of a pool, as far as this process knows: it
// reads nothing from the store.
func (p *Pools) Sharing(of platform.PoolRef) (others []platform.PoolRef) {
	owner, _ := p.peek(of)
	if owner.Origin != nil {
		owner, _ = p.peek(owner.Home())
	}
	if owner.Sharing == nil {
		return nil
	}
	members := []platform.PoolRef{owner.Ref()}
	for _, o := range owner.Sharing.Offers {
		members = append(members, o.Guest())
	}
	for i, ref := range members { // the next one is the first, so that each has its turn
		if ref == of {
			return append(append(others, members[i+1:]...), members[:i]...)
		}
	}
	return nil
}
