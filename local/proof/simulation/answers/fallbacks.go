package answers

import (
	"context"
	"fmt"
	"slices"

	"github.com/sortie-dev/sortie/shared/app/artifacts"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// spare is a fallback of the pool, with a model of its own. Its engines have the faults of the
// others.
type spare struct {
	place platform.EnginePlace
	price catalog.Price
	on    []platform.FallbackReason
}

const (
	sparePool  = "pool1"
	spareModel = "big"
)

// drawSpare draws the fallback of the pool, in half of the worlds.
func (w *world) drawSpare() {
	r := w.roll("fallback")
	if r.IntN(2) == 0 {
		return
	}
	w.spare = &spare{price: catalog.Price{Input: []int64{0, 700}[r.IntN(2)], Output: []int64{100, 2500}[r.IntN(2)]}}
	w.spare.place = platform.EnginePlace{Kind: platform.EngineMock, Model: spareModel, Slots: w.place.Slots, Replicas: make([]platform.EngineReplica, 1+r.IntN(2))}
	for i := range w.spare.place.Replicas {
		id := fmt.Sprintf("s%d", i+1)
		w.spare.place.Replicas[i].ID = id
		w.newReplica(id)
	}
	for _, reason := range platform.FallbackReasons(true) {
		if r.IntN(3) > 0 {
			w.spare.on = append(w.spare.on, reason)
		}
	}
	if len(w.spare.on) == 0 {
		w.spare.on = []platform.FallbackReason{platform.FallbackError}
	}
}

// storeSpare stores the fallback, and returns the fallbacks of the pool.
func (w *world) storeSpare(ctx context.Context, models *artifacts.Models) ([]platform.Fallback, error) {
	if w.spare == nil {
		return nil, nil
	}
	_, _, err := models.Create(ctx, identity(""), spareModel, catalog.Definition{
		Engines: []platform.EngineKind{platform.EngineMock}, Workloads: catalog.Workloads(), Price: w.spare.price,
	}, false)
	if err == nil {
		err = w.raw.store.SavePool(ctx, platform.Pool{Tenant: tenant, ID: sparePool, Limit: w.spare.place.Limit(), Engine: &w.spare.place, CreatedAt: bubble.Now()})
	}
	if err != nil {
		return nil, fmt.Errorf("cannot store the fallback: %w", err)
	}
	w.note("a fallback on %v with %d replicas at the price %+v", w.spare.on, len(w.spare.place.Replicas), w.spare.price)
	return []platform.Fallback{{Pool: sparePool, On: w.spare.on}}, nil
}

// checkFallbacks checks where a run has been. all are the records of its stream: no fallback follows
// a part of an answer.
func (w *world) checkFallbacks(r run.Run, all []inference.Record) {
	w.checkWay(r)
	if r.Detour == nil {
		return
	}
	w.outcome.Fallbacks++
	steps := r.Detour.Steps
	if w.spare == nil || len(steps) != 1 || r.Detour.Home != poolID {
		w.fail("%s has the fallbacks %+v, want at most one, from the pool to its fallback", r.ID, r.Detour)
		return
	}
	step := steps[0]
	if step.From != poolID || step.To != sparePool || step.Message == "" || !slices.Contains(w.spare.on, step.Reason) {
		w.fail("%s has the fallback %+v, want one to %s on %v", r.ID, step, sparePool, w.spare.on)
	}
	if (step.Reason != platform.FallbackError) != (step.Attempt == 0) {
		w.fail("%s has the fallback %+v, want one for a full queue or a long prompt exactly before its first attempt", r.ID, step)
	}
	for _, record := range all {
		if content := record.Tokens != nil || record.Reasoning != nil || record.Calls != nil || record.Result != nil; content && record.Attempt <= step.Attempt {
			w.fail("%s fell back after attempt %d, which has sent a part of its answer", r.ID, step.Attempt)
		}
	}
}

// priceOf returns the price of the pool that a run was in at its end.
func (w *world) priceOf(r run.Run) catalog.Price {
	switch r.Slot.Pool {
	case sparePool:
		return w.spare.price
	case copyPool:
		return w.routes.price
	}
	return w.price
}

// mostOf returns the most that a run may use: at the dearer of the prices of its pools.
func (w *world) mostOf(r run.Run) budget.Amount {
	work := r.Work.Inference
	at := func(p catalog.Price) budget.Amount {
		generated := work.MaxTokens
		if work.Workload != string(port.WorkloadCompletion) {
			generated = 0
		}
		prompt := work.PromptTokens
		return budget.Amount{Turns: 1, Tokens: int64(prompt + generated), CostNano: int64(prompt)*p.Input + int64(generated)*p.Output}
	}
	if _, reason := w.wayOf(r); len(r.Routes) == 0 || reason == platform.FallbackContext {
		return at(w.priceOf(r))
	}
	return at(w.price).AtLeast(at(w.spare.price))
}
