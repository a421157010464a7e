package inferences_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

var guest = port.Identity{Tenant: "lab", Workspace: "lab", Subject: "guest"}

// offers stores the offers of pool0, and the guest's pool of the same name.
func (h *inferring) offers(s platform.Sharing) {
	h.Helper()
	p, err := h.store.LoadPool(h.Context(), platform.PoolRef{Tenant: client.Tenant, ID: "pool0"})
	h.ok(err)
	p.Sharing = &s
	h.ok(h.store.SavePool(h.Context(), p))
	_, _, err = h.pools.Put(h.Context(), guest, "pool0", pools.Definition{Origin: &platform.Origin{Tenant: client.Tenant, Pool: "pool0"}}, change.Precondition{})
	h.ok(err)
}

func byGuest(in *inferences.NewTask) { in.Identity = guest }

// slots returns the number of tasks with a slot and of queued ones of a tenant in pool0.
func (h *inferring) slots(tenant string) (held, queued int) {
	h.Helper()
	holders, err := h.store.Holders(h.Context(), tenant, "pool0", 100)
	h.ok(err)
	queued, err = h.store.QueueLength(h.Context(), tenant, "pool0", 100)
	h.ok(err)
	return len(holders), queued
}

// TestSlotsAreSharedByWeight fills a pool of eight slots from two tenants: with tasks of the owner
// alone, it has all of them. As its tasks end, the guest gets its part, at most what is offered.
func TestSlotsAreSharedByWeight(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		sharing platform.Sharing
		want    int
	}{
		"weight": {platform.Sharing{Weight: 1, Offers: []platform.Offer{{Tenant: "lab", Pool: "pool0", Slots: 8, Weight: 3}}}, 6},
		"slots":  {platform.Sharing{Weight: 1, Offers: []platform.Offer{{Tenant: "lab", Pool: "pool0", Slots: 2, Weight: 3}}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newInferring(t, 1, 8)
			h.offers(test.sharing)
			stalled := func(change ...func(*inferences.NewTask)) string {
				h.engines["r1"].FailNext(mockengine.FailStall, 0)
				return h.ask(1, change...)
			}
			var own []string
			for range 20 {
				own = append(own, stalled())
			}
			for range 10 {
				stalled(byGuest)
			}
			if held, _ := h.slots(client.Tenant); held != 8 {
				t.Fatalf("got %d slots of the owner before the guest has tasks, want 8", held)
			}
			for _, task := range own[:10] {
				r, err := h.store.Find(t.Context(), client.Tenant, task)
				h.ok(err)
				if r.Slot.State == platform.SlotHeld {
					_, err = h.tasks.Cancel(t.Context(), client, task, "")
					h.ok(err)
					h.ended(task)
				}
			}
			held, guests, queued := 0, 0, 0
			for began := time.Now(); held+guests < 8 && time.Since(began) < time.Minute; runtime.Gosched() { // the last slot is granted after its release
				held, _ = h.slots(client.Tenant)
				guests, queued = h.slots(guest.Tenant)
			}
			if held != 8-test.want || guests != test.want || queued != 10-test.want {
				t.Errorf("got %d slots of the owner and %d of the guest with %d queued, want %d and %d", held, guests, queued, 8-test.want, test.want)
			}
		})
	}
}

// TestGuestPaysForItsTasks uses an offered pool up to its tokens of a day, on the account of the guest.
func TestGuestPaysForItsTasks(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 2)
	h.offers(platform.Sharing{Weight: 1, Offers: []platform.Offer{{Tenant: "lab", Pool: "pool0", Slots: 1, Weight: 1, TokensPerDay: 20}}})
	in := inferences.NewTask{Identity: guest, Model: "mock", Workload: port.WorkloadCompletion, MaxTokens: 8}
	in.Request.Prompt = "a"
	accepted, err := h.tasks.Create(t.Context(), in)
	h.ok(err)
	for r := accepted.Run; !r.State.Terminal(); {
		h.ok(h.sweeper.Await(t.Context(), r))
		r, err = h.store.Find(t.Context(), guest.Tenant, r.TaskID)
		h.ok(err)
	}
	found, _, err := h.pools.Guests(t.Context(), client, "pool0", "")
	h.ok(err)
	account, err := h.store.Account(t.Context(), guest.Tenant, "tenant")
	h.ok(err)
	if len(found) != 1 || !found[0].Accepted || found[0].Used.Turns != 1 || found[0].Used.Tokens < 8 || found[0].Used != account.Spent {
		t.Errorf("got %+v and the account %+v, want the same usage of one task", found, account)
	}
	in.MaxTokens = 20
	if _, err = h.tasks.Create(t.Context(), in); !fault.Is(err, fault.AdmissionReject) || !strings.Contains(err.Error(), "20 tokens a day") {
		t.Errorf("got %v, want a refusal that names the tokens of a day", err)
	}
	if _, err := h.store.Account(t.Context(), client.Tenant, "tenant"); err == nil {
		t.Error("got an account of the owner, want none")
	}
}

// TestWithdrawnOfferRefusesByName withdraws an offer while a task of the guest runs.
func TestWithdrawnOfferRefusesByName(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 2)
	h.offers(platform.Sharing{Weight: 1, Offers: []platform.Offer{{Tenant: "lab", Pool: "pool0", Slots: 1, Weight: 1}}})
	if served, err := h.tasks.Served(t.Context(), guest); err != nil || len(served) != 1 || served[0].ID != "mock" {
		t.Errorf("got the models %+v, %v, want mock", served, err)
	}
	if err := h.pools.Delete(t.Context(), client, "pool0", change.Precondition{}); !fault.Is(err, fault.PoolInUse) || !strings.Contains(err.Error(), "offered") {
		t.Errorf("got %v for the deletion of an offered pool, want PoolInUse", err)
	}
	h.engines["r1"].FailNext(mockengine.FailStall, 0)
	task := h.ask(1, byGuest)
	p, err := h.store.LoadPool(t.Context(), platform.PoolRef{Tenant: client.Tenant, ID: "pool0"})
	h.ok(err)
	p.Sharing = nil
	h.ok(h.store.SavePool(t.Context(), p))
	h.restart() // without what it has cached
	in := inferences.NewTask{Identity: guest, Model: "mock", Workload: port.WorkloadCompletion, MaxTokens: 8}
	in.Request.Prompt = "a"
	if _, err = h.tasks.Create(t.Context(), in); !fault.Is(err, fault.PoolUnavailable) || !strings.Contains(err.Error(), "local does not offer the pool pool0 any more") {
		t.Errorf("got %v, want a refusal that names the offer", err)
	}
	if served, err := h.tasks.Served(t.Context(), guest); err != nil || len(served) > 0 {
		t.Errorf("got the models %+v, %v, want none", served, err)
	}
	if r, err := h.store.Find(t.Context(), guest.Tenant, task); err != nil || r.State == run.Pending {
		t.Errorf("got %s, %v, want the task of before with its slot", r.State, err)
	}
	if _, _, err := h.pools.Put(t.Context(), guest, "another", pools.Definition{Origin: &platform.Origin{Tenant: client.Tenant, Pool: "pool0"}}, change.Precondition{}); !fault.Is(err, fault.Unprocessable) && err == nil {
		t.Error("got a pool without an offer")
	}
}
