package answers

import (
	"context"
	"fmt"
	"slices"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// ownerTenant offers the pool in some worlds; the tenant of the clients is then its guest.
const ownerTenant = "owner"

// storePool stores the pool. In a third of the worlds without a fallback it is one that another tenant
// offers, with its slots and tokens of a day.
func (w *world) storePool(ctx context.Context, p platform.Pool) error {
	r := w.roll("offer")
	if w.spare != nil || r.IntN(3) > 0 {
		return w.raw.store.SavePool(ctx, p)
	}
	w.offer = &platform.Offer{Tenant: tenant, Pool: poolID, Slots: 1 + r.IntN(w.place.Limit()), Weight: 1, TokensPerDay: int64(r.IntN(3)) * 60}
	owner := p
	owner.Tenant, owner.Sharing = ownerTenant, &platform.Sharing{Weight: 1, Offers: []platform.Offer{*w.offer}}
	if err := w.raw.store.SavePool(ctx, owner); err != nil {
		return fmt.Errorf("cannot store the owner's pool: %w", err)
	}
	w.note("the pool is offered: %+v", *w.offer)
	p.Limit, p.Engine = 0, nil
	p.Origin = &platform.Origin{Tenant: ownerTenant, Pool: poolID, Kind: w.place.Kind, Model: w.place.Model}
	return w.raw.store.SavePool(ctx, p)
}

// checkOffer checks that a task is on the account of the offer, and that the offer's slots suffice for the
// tasks that hold one.
func (w *world) checkOffer(runs []run.Run, held int) {
	if w.offer == nil {
		return
	}
	if held > w.offer.Slots {
		w.fail("%d runs have a slot of an offer of %d", held, w.offer.Slots)
	}
	for _, r := range runs {
		if r.Work.Inference.Model != copyModel && !slices.Contains(r.Reservation.Scopes, budget.OfferScope(ownerTenant, poolID, r.CreatedAt)) {
			w.fail("%s has the accounts %v, want that of the offer", r.ID, r.Reservation.Scopes)
		}
	}
}
