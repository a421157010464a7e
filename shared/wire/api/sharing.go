package api

import (
	"cmp"

	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// poolSharing converts the offers of the pool with an id; nil without offers.
func poolSharing(id string, s *contract.PoolSharing) *platform.Sharing {
	if s == nil {
		return nil
	}
	found := platform.Sharing{Weight: weightOf(s.Weight)}
	for _, o := range s.Offers {
		found.Offers = append(found.Offers, platform.Offer{
			Tenant: o.Tenant, Pool: cmp.Or(o.Pool, id), Slots: o.Slots, Weight: weightOf(o.Weight), TokensPerDay: o.TokensPerDay,
		})
	}
	return &found
}

// weightOf returns a weight; 1 if it is absent.
func weightOf(field *int) int {
	if field == nil {
		return 1
	}
	return *field
}

// sharedPool returns the wire form of the offers of a pool; nil without offers.
func sharedPool(s *platform.Sharing) *contract.PoolSharing {
	if s == nil {
		return nil
	}
	found := contract.PoolSharing{Weight: &s.Weight, Offers: make([]contract.PoolOffer, len(s.Offers))}
	for i, o := range s.Offers {
		found.Offers[i] = poolOffer(o)
	}
	return &found
}

func poolOffer(o platform.Offer) contract.PoolOffer {
	return contract.PoolOffer{Tenant: o.Tenant, Pool: o.Pool, Slots: o.Slots, Weight: &o.Weight, TokensPerDay: o.TokensPerDay}
}

// poolFrom returns the pool of another tenant as its guest may know it; nil for a pool with slots of its
// own.
func poolFrom(v pools.View) *contract.PoolFrom {
	if v.Origin == nil {
		return nil
	}
	found := contract.PoolFrom{Tenant: v.Origin.Tenant, Pool: v.Origin.Pool, Engine: string(v.Origin.Kind), Model: v.Origin.Model}
	if v.Hosted != nil {
		found.Engine, found.Model = string(v.Hosted.Kind), v.Hosted.Model
		found.TokensPerDay, found.Withdrawn = v.Origin.Offer.TokensPerDay, v.Origin.Withdrawn()
	}
	return &found
}

// PoolGuests returns the response for the guests of a pool on a day.
func PoolGuests(guests []pools.Guest, day string) contract.PoolGuests {
	found := contract.PoolGuests{Day: day, Guests: make([]contract.PoolGuest, len(guests))}
	for i, g := range guests {
		found.Guests[i] = contract.PoolGuest{
			PoolOffer: poolOffer(g.Offer), Accepted: g.Accepted, Held: g.Held, Queued: g.Queued,
			Tasks: g.Used.Turns, Tokens: g.Used.Tokens, TimeMS: g.Used.TimeMS, CostNanodollars: g.Used.CostNano,
		}
	}
	return found
}
