package platform_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

func TestSharesAreInProportionToWeights(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		slots  int
		claims []platform.Claim
		want   []int
	}{
		{8, []platform.Claim{{1, 100}, {3, 100}}, []int{2, 6}},
		{8, []platform.Claim{{1, 1}, {3, 100}}, []int{1, 7}},
		{8, []platform.Claim{{1, 100}, {3, 2}}, []int{6, 2}},
		{8, []platform.Claim{{1, 2}, {1, 3}}, []int{2, 3}},
		{13, []platform.Claim{{1, 100}, {1, 1}, {2, 100}}, []int{4, 1, 8}},
		{8, []platform.Claim{{1, 0}, {3, 0}}, []int{0, 0}},
		{0, []platform.Claim{{1, 5}}, []int{0}},
	} {
		if got := platform.Shares(test.slots, test.claims, 7); !slices.Equal(got, test.want) {
			t.Errorf("%d slots for %v: got %v, want %v", test.slots, test.claims, got, test.want)
		}
	}
}

// TestRestOfSharesIsDrawn divides slots that the weights do not divide. Each division gives every slot,
// and on average the claims get their part.
func TestRestOfSharesIsDrawn(t *testing.T) {
	t.Parallel()
	const draws = 30_000
	for _, slots := range []int{1, 2, 3, 5} {
		claims := []platform.Claim{{1, 9}, {2, 9}, {4, 9}}
		sums := make([]int, len(claims))
		for draw := range draws {
			got := platform.Shares(slots, claims, uint64(draw)*0x9e3779b97f4a7c15)
			if got[0]+got[1]+got[2] != slots {
				t.Fatalf("%d slots: got %v", slots, got)
			}
			for i, n := range got {
				sums[i] += n
			}
		}
		for i, c := range claims {
			share, want := float64(sums[i])/draws, float64(slots*c.Weight)/7
			if share < want*0.97 || share > want*1.03 {
				t.Errorf("%d slots, weight %d of 7: got %.3f slots on average, want %.3f", slots, c.Weight, share, want)
			}
		}
	}
}

func TestGuestHasTheOfferedSlots(t *testing.T) {
	t.Parallel()
	engine := platform.EnginePlace{Kind: platform.EngineVLLM, Model: "llama", SecretRef: "key", Replicas: []platform.EngineReplica{{ID: "r1", URL: "https://a"}}}
	owner := platform.Pool{Tenant: "acme", ID: "gpu", Limit: 8, Engine: &engine, Sharing: &platform.Sharing{Weight: 1, Offers: []platform.Offer{{Tenant: "lab", Pool: "shared", Slots: 3, Weight: 2}}}}
	guest := platform.Pool{Tenant: "lab", ID: "shared", Origin: &platform.Origin{Tenant: "acme", Pool: "gpu", Kind: platform.EngineVLLM, Model: "llama"}}
	if got := guest.HostedBy(owner); got.Limit != 3 || got.Engine != owner.Engine || got.Draining || got.Origin.Withdrawn() || got.Ref() != guest.Ref() || got.Home() != owner.Ref() {
		t.Errorf("got %+v, want three slots of the owner's engine", got)
	}
	if got := guest.HostedBy(owner.Drain(owner.CreatedAt, "ann", owner.CreatedAt)); !got.Draining {
		t.Errorf("got %+v, want it to drain with the owner's pool", got)
	}
	other := guest
	other.ID = "another"
	for name, withdrawn := range map[string]platform.Pool{"another pool": other.HostedBy(owner), "no owner": guest.HostedBy(platform.Pool{})} {
		if !withdrawn.Draining || !withdrawn.Origin.Withdrawn() || len(withdrawn.Engine.Replicas) > 0 || withdrawn.Engine.SecretRef != "" || withdrawn.Engine.Model != "llama" || withdrawn.Limit != 1 {
			t.Errorf("%s: got %+v, want a draining pool without replicas", name, withdrawn)
		}
	}
}

func TestOffersHaveTheirFields(t *testing.T) {
	t.Parallel()
	pool := platform.PoolRef{Tenant: "acme", ID: "gpu"}
	good := platform.Offer{Tenant: "lab", Pool: "gpu", Slots: 1, Weight: 1}
	for want, change := range map[string]func(*platform.Offer){
		"":                              func(*platform.Offer) {},
		"sharing.offers.0.tenant":       func(o *platform.Offer) { o.Tenant = "acme" },
		"sharing.offers.0.pool":         func(o *platform.Offer) { o.Pool = "A" },
		"sharing.offers.0.slots":        func(o *platform.Offer) { o.Slots = 0 },
		"sharing.offers.0.weight":       func(o *platform.Offer) { o.Weight = 101 },
		"sharing.offers.0.tokensPerDay": func(o *platform.Offer) { o.TokensPerDay = -1 },
	} {
		o := good
		change(&o)
		if got := fieldsOf(platform.CheckSharing(pool, platform.Sharing{Weight: 1, Offers: []platform.Offer{o}})); got != want {
			t.Errorf("got the faults %q, want %q", got, want)
		}
	}
	if got := fieldsOf(platform.CheckSharing(pool, platform.Sharing{Offers: []platform.Offer{good, good}})); got != "sharing.weight sharing.offers.1.tenant" {
		t.Errorf("got the faults %q, want the weight and the repeated tenant", got)
	}
	if got := fieldsOf(platform.CheckSharing(pool, platform.Sharing{Weight: 1})); got != "sharing.offers" {
		t.Errorf("got the faults %q, want sharing.offers", got)
	}
}

func fieldsOf(faults []*fault.Fault) string {
	fields := make([]string, len(faults))
	for i, f := range faults {
		fields[i] = f.Field
	}
	return strings.Join(fields, " ")
}
