package platform

import (
	"slices"
	"strconv"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// Sharing offers an engine pool to other tenants.
type Sharing struct {
	// Weight is the part of the pool's slots that its owner has while tasks wait, beside the weights of
	// the offers.
	Weight int     `json:"weight"`
	Offers []Offer `json:"offers"`
}

// Offer lets another tenant, the guest, use an engine pool by a pool of its own.
type Offer struct {
	Tenant string `json:"tenant"`
	// Pool is the id of the guest's pool.
	Pool string `json:"pool"`
	// Slots is the most tasks of the guest that hold a slot at the same time.
	Slots int `json:"slots"`
	// Weight is as in Sharing.
	Weight int `json:"weight"`
	// TokensPerDay is the most tokens of the guest's tasks that are admitted on a day in UTC; 0 is no
	// limit.
	TokensPerDay int64 `json:"tokensPerDay,omitempty"`
}

// Guest identifies the guest's pool.
func (o Offer) Guest() PoolRef { return PoolRef{o.Tenant, o.Pool} }

// Origin is the pool of another tenant that a guest's pool uses.
type Origin struct {
	Tenant string `json:"tenant"`
	Pool   string `json:"pool"`
	// Kind and Model are those of the pool when the guest's pool was created. The guest knows no others
	// after the offer was withdrawn.
	Kind  EngineKind `json:"kind"`
	Model string     `json:"model"`
	// Offer is the current offer; zero in a record, and after the offer was withdrawn.
	Offer Offer `json:"-"`
}

// Withdrawn reports whether the offer does not exist any more.
func (o Origin) Withdrawn() bool { return o.Offer.Slots == 0 }

// The limits of offers.
const (
	MaxOffers = 50
	MaxWeight = 100
)

// Home returns the pool whose replicas serve the tasks of the pool: that of the owner for a guest's
// pool, else the pool itself.
func (p Pool) Home() PoolRef {
	if p.Origin != nil {
		return PoolRef{p.Origin.Tenant, p.Origin.Pool}
	}
	return p.Ref()
}

// OfferTo returns the offer to a guest's pool.
func (p Pool) OfferTo(guest PoolRef) (o Offer, ok bool) {
	if p.Sharing == nil || p.Engine == nil {
		return o, false
	}
	i := slices.IndexFunc(p.Sharing.Offers, func(o Offer) bool { return o.Guest() == guest })
	if i < 0 {
		return o, false
	}
	return p.Sharing.Offers[i], true
}

// HostedBy returns a guest's pool with the engine and the offered slots of its owner's pool. It drains
// while the owner's pool does, and after the offer was withdrawn; it then has no replicas.
func (p Pool) HostedBy(owner Pool) Pool {
	origin := *p.Origin
	offer, ok := owner.OfferTo(p.Ref())
	if !ok {
		p.Engine, p.Limit, p.Draining = &EnginePlace{Kind: origin.Kind, Model: origin.Model}, 1, true
		return p
	}
	origin.Offer = offer
	p.Origin, p.Engine, p.Limit, p.Draining = &origin, owner.Engine, offer.Slots, p.Draining || owner.Draining
	return p
}

// CheckSharing returns a fault for each invalid field of the offers of a tenant's pool.
func CheckSharing(pool PoolRef, s Sharing) (found []*fault.Fault) {
	bad := func(field, format string, args ...any) { found = append(found, fault.Invalid(field, format, args...)) }
	checkWeight := func(field string, weight int) {
		if weight < 1 || weight > MaxWeight {
			bad(field, "%d is out of range, want 1 to %d", weight, MaxWeight)
		}
	}
	checkWeight("sharing.weight", s.Weight)
	if n := len(s.Offers); n < 1 || n > MaxOffers {
		bad("sharing.offers", "%d offers, want 1 to %d", n, MaxOffers)
		return found
	}
	for i, o := range s.Offers {
		at := "sharing.offers." + strconv.Itoa(i) + "."
		switch {
		case !limit.ValidName(o.Tenant):
			bad(at+"tenant", "malformed tenant %q, want 1 to 63 lower-case letters, digits and hyphens, the first no hyphen", limit.Cut(o.Tenant, limit.FileName))
		case o.Tenant == pool.Tenant:
			bad(at+"tenant", "the tenant of the pool, want another one")
		case slices.ContainsFunc(s.Offers[:i], func(other Offer) bool { return other.Tenant == o.Tenant }):
			bad(at+"tenant", "repeated tenant %q, want each once", o.Tenant)
		}
		if !limit.ValidName(o.Pool) {
			bad(at+"pool", "malformed pool %q, want 1 to 63 lower-case letters, digits and hyphens, the first no hyphen", limit.Cut(o.Pool, limit.FileName))
		}
		if o.Slots < 1 || o.Slots > limit.PoolSlots {
			bad(at+"slots", "%d is out of range, want 1 to %d", o.Slots, limit.PoolSlots)
		}
		checkWeight(at+"weight", o.Weight)
		if o.TokensPerDay < 0 || o.TokensPerDay > MaxTokensPerDay {
			bad(at+"tokensPerDay", "%d is out of range, want 0 (no limit) to %d", o.TokensPerDay, int64(MaxTokensPerDay))
		}
	}
	return found
}

// MaxTokensPerDay is the maximum of Offer.TokensPerDay.
const MaxTokensPerDay = 1_000_000_000_000_000

// Claim is what a pool wants of slots that several pools share.
type Claim struct {
	Weight int
	// Wants is the most slots that the pool can use: those that it holds, and one for each queued run.
	Wants int
}

// Shares divides slots among claims: in proportion to their weights, and what a claim does not want
// among the others. A part of a slot goes to one of the claims, drawn with the size of their parts
// as chances: draw is a random number.
func Shares(slots int, claims []Claim, draw uint64) []int {
	given, rests := make([]int, len(claims)), make([]int, len(claims))
	for left, bounded := slots, true; bounded && left > 0; {
		weights := 0
		for i, c := range claims {
			if c.Wants > given[i] {
				weights += c.Weight
			}
		}
		if weights == 0 {
			break
		}
		all := left
		bounded = false
		for i, c := range claims {
			open, part := max(c.Wants-given[i], 0), all*c.Weight/weights
			if rests[i] = 0; open > 0 {
				rests[i] = all * c.Weight % weights
				bounded = bounded || open < part || open == part && rests[i] > 0
			}
			given[i] += min(open, part)
			left -= min(open, part)
		}
		if !bounded {
			drawRests(given, rests, weights, draw)
		}
	}
	return given
}

// drawRests gives one slot more to some of the claims, each with the chance of its rest of a whole. The
// rests are a multiple of the whole together.
func drawRests(given, rests []int, whole int, draw uint64) {
	next, sum := int((draw>>16)%uint64(whole)), 0 //nolint:gosec // G115: whole is positive, and the result less
	for i, rest := range rests {
		if sum += rest; next < sum {
			given[i]++
			next += whole
		}
	}
}
