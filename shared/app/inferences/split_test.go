package inferences_test

import (
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestShareOfTheTasksGoesToTheNewModel splits a model, and then drains the pool of the new one.
func TestShareOfTheTasksGoesToTheNewModel(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 64, falls(platform.FallbackError))
	h.prices("mock", 0, catalog.Price{Output: 10})
	h.prices("big", 0, catalog.Price{Output: 1000})
	split := func(shares ...catalog.Share) {
		t.Helper()
		_, err := h.models.Change(t.Context(), client, "mock", change.Precondition{}, false, func(d catalog.Definition) (catalog.Definition, error) {
			d.Split = shares
			return d, nil
		})
		h.ok(err)
	}
	split(catalog.Share{Model: "big", Percent: 40})
	in := map[string]int{}
	for range 60 {
		task := h.ask(2)
		r := h.ended(task)
		in[r.Slot.Pool]++
		shared, ok := catalog.Definition{Split: []catalog.Share{{Model: "big", Percent: 40}}}.ShareOf(task)
		want, price := "pool0", int64(20)
		if ok {
			want, price = "cloud", 2000
		}
		if r.State != run.Completed || r.Slot.Pool != want || r.Work.Inference.Model != "mock" || r.Work.Inference.SplitPercent != shared.Percent || r.Reservation.Used.CostNano != price {
			t.Fatalf("got %s in pool %s with %+v and %+v used, want pool %s at its price", r.State, r.Slot.Pool, r.Work.Inference, r.Reservation.Used, want)
		}
		x, err := h.explains.ExplainRun(t.Context(), client, r.ID)
		h.ok(err)
		if strings.Contains(x.Message, "40 % for model mock that model big serves") != ok {
			t.Errorf("got %q of a task in pool %s, want the share in it", x.Message, r.Slot.Pool)
		}
	}
	if in["cloud"] < 10 || in["pool0"] < 20 {
		t.Errorf("got %v, want about 40 percent in pool cloud", in)
	}
	split(catalog.Share{Model: "big", Percent: 100})
	for models, want := range map[string]string{"mock": "pool0", "mock big": "cloud"} {
		if r := h.ended(h.ask(2, byKey("alice", access.Grant{Models: strings.Fields(models)}))); r.Slot.Pool != want {
			t.Errorf("got pool %s for a key with the models %s, want %s", r.Slot.Pool, models, want)
		}
	}
	spare, err := h.store.LoadPool(t.Context(), platform.PoolRef{Tenant: client.Tenant, ID: "cloud"})
	h.ok(err)
	spare.Draining = true
	h.ok(h.store.SavePool(t.Context(), spare))
	if r := h.ended(h.ask(2)); r.Slot.Pool != "pool0" || r.Work.Inference.SplitPercent != 0 {
		t.Errorf("got pool %s while the other pool drains, want pool0", r.Slot.Pool)
	}
}
