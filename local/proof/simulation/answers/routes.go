package answers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/app/artifacts"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/base/hash"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/routing"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/usage"
	"github.com/sortie-dev/sortie/shared/port"
)

// routes are the ways of tasks besides the fallback of their pool.
type routes struct {
	// split is the share of the tasks that the model of the fallback serves, shadow the share of those
	// that are copied to a third model, in percent; 0 for none.
	split, shadow int
	// context is the context of the model, in tokens; 0 is long enough for every prompt.
	context int
	// copies is the pool of the third model. Some clients use it, too.
	copies platform.EnginePlace
	price  catalog.Price
}

const (
	copyPool  = "pool2"
	copyModel = "next"
	// longPrompt is the number of words that make a prompt too long for a short context.
	longPrompt   = 60
	shortContext = 60
)

// drawRoutes draws the split, the copies and the context.
func (w *world) drawRoutes() {
	r := w.roll("routes")
	if w.spare != nil {
		w.routes.split = []int{0, 0, 30, 100}[r.IntN(4)]
	}
	w.routes.shadow = []int{0, 50, 100}[r.IntN(3)]
	w.routes.context = []int{0, shortContext}[r.IntN(2)]
	w.routes.price = catalog.Price{Input: []int64{0, 900}[r.IntN(2)], Output: 3000}
	w.routes.copies = platform.EnginePlace{Kind: platform.EngineMock, Model: copyModel, Slots: w.place.Slots, Replicas: []platform.EngineReplica{{ID: "n1"}}}
	w.newReplica("n1")
}

// storeRoutes stores the third model with its pool, and returns the definition of the first model.
func (w *world) storeRoutes(ctx context.Context, models *artifacts.Models, d catalog.Definition) (catalog.Definition, error) {
	_, _, err := models.Create(ctx, identity(""), copyModel, catalog.Definition{
		Engines: []platform.EngineKind{platform.EngineMock}, Workloads: catalog.Workloads(), Price: w.routes.price,
	}, false)
	if err == nil {
		err = w.raw.store.SavePool(ctx, platform.Pool{Tenant: tenant, ID: copyPool, Limit: w.routes.copies.Limit(), Engine: &w.routes.copies, CreatedAt: bubble.Now()})
	}
	if err != nil {
		return d, fmt.Errorf("cannot store the model of copies: %w", err)
	}
	if d.ContextTokens = w.routes.context; w.routes.split > 0 {
		d.Split = []catalog.Share{{Model: spareModel, Percent: w.routes.split}}
	}
	if w.routes.shadow > 0 {
		d.Shadow = []catalog.Share{{Model: copyModel, Percent: w.routes.shadow}}
	}
	w.note("split %d, shadow %d at the price %+v, context %d", w.routes.split, w.routes.shadow, w.routes.price, w.routes.context)
	return d, nil
}

// modelOf returns the model that a client requests.
func (w *world) modelOf(name string) string {
	if w.task("model "+name) == 0 {
		return copyModel
	}
	return modelID
}

// route sets the model of a request, and makes some prompts too long for a short context.
func (w *world) route(in *inferences.NewTask, name string) {
	in.Model = w.modelOf(name)
	if in.Workload == port.WorkloadCompletion && w.task("long "+name) == 0 && in.Request.Prompt != "" {
		in.Request.Prompt += strings.Repeat(" word", longPrompt)
	}
}

// asksOf returns the name under which a request to a replica counts: a copy has no slot of its task.
func (w *world) asksOf(replica, name string) string {
	if strings.HasPrefix(replica, "n") && w.modelOf(name) != copyModel {
		return "copy of " + name
	}
	return name
}

// inBucket is the oracle of shares: the id of a task has one of a hundred buckets, and the first of
// them belong to the share.
func inBucket(key string, percent int) bool { return int(hash.Of(key)%100) < percent }

// wayOf returns the pool in which a task should have begun, and the reason for a fallback before its
// first attempt.
func (w *world) wayOf(r run.Run) (pool string, reason platform.FallbackReason) {
	work := r.Work.Inference
	long := work.Workload == string(port.WorkloadCompletion) && w.routes.context > 0 && work.PromptTokens > w.routes.context
	switch {
	case work.Model == copyModel:
		return copyPool, ""
	case inBucket(r.TaskID, w.routes.split):
		return sparePool, ""
	case long:
		return poolID, platform.FallbackContext
	}
	return poolID, ""
}

// checkWay compares the way of a run with the oracle.
func (w *world) checkWay(r run.Run) {
	pool, reason := w.wayOf(r)
	work, home, first := r.Work.Inference, r.Slot.Pool, platform.FallbackReason("")
	if r.Detour != nil {
		home, first = r.Detour.Home, r.Detour.Steps[0].Reason
	}
	if home != pool || (first == platform.FallbackContext) != (reason == platform.FallbackContext) {
		w.fail("%s began in pool %s with a fallback for %q, want pool %s and %q", r.ID, home, first, pool, reason)
	}
	split := 0
	if pool == sparePool {
		split = w.routes.split
		w.outcome.Splits++
	}
	if reason == platform.FallbackContext {
		w.outcome.Long++
	}
	served := map[string]string{poolID: modelID, sparePool: spareModel, copyPool: copyModel}[r.Slot.Pool]
	if work.SplitPercent != split || work.ServedModel() != served {
		w.fail("%s is served by %s with a split of %d, want %s and %d", r.ID, work.ServedModel(), work.SplitPercent, served, split)
	}
	for _, route := range r.Routes {
		if route.From != "" && route.Unfit != "" && !route.TooLong { // large requests are longer than a context that is unknown
			w.fail("%s cannot use the fallback: %s", r.ID, route.Unfit)
		}
	}
	w.checkCopy(r)
}

// checkCopy compares the copy of a run with the oracle.
func (w *world) checkCopy(r run.Run) {
	s, want := r.Shadow, r.Work.Inference.Model == modelID && inBucket("shadow/"+r.TaskID, w.routes.shadow)
	if (s != nil) != want || s != nil && (s.Model != copyModel || s.Percent != w.routes.shadow) {
		w.fail("%s has the copy %+v, want one %t", r.ID, s, want)
		return
	}
	if s == nil || s.End == nil {
		return
	}
	end := s.End
	if r.State != run.Completed || end.Pool != copyPool || (end.Outcome == routing.ShadowCompleted) != (end.Reason == "") {
		w.fail("%s is %s with the end of a copy %+v, want one of a Completed task in pool %s", r.ID, r.State, end, copyPool)
	}
	most := int64(r.Work.Inference.MaxTokens)
	if r.Work.Inference.Workload != string(port.WorkloadCompletion) {
		most = 0
	}
	if cost := end.Input*w.routes.price.Input + end.Output*w.routes.price.Output; end.Output > most || end.CostNano != cost || end.Outcome != routing.ShadowCompleted && end.Tokens != (usage.Tokens{}) {
		w.fail("%s has the end of a copy %+v, want at most %d tokens for %d", r.ID, end, most, cost)
	}
	w.outcome.Copies[end.Outcome]++
}

// checkUsage compares the usage by key with the sums over the runs, and that of copies with their ends.
func (w *world) checkUsage(ctx context.Context, runs []run.Run) {
	want := map[string]usage.Sum{}
	for _, r := range runs {
		used := r.Reservation.Used
		sum := usage.Sum{Tasks: used.Turns, Tokens: r.Reservation.UsedTokens, TimeMS: used.TimeMS, CostNano: used.CostNano}
		want[r.Reservation.Key] = want[r.Reservation.Key].Plus(sum)
		if s := r.Shadow; s != nil && s.End != nil {
			sum = usage.Sum{Tokens: s.End.Tokens, TimeMS: s.End.DurationMS, CostNano: s.End.CostNano}
			if s.End.Outcome == routing.ShadowCompleted {
				sum.Tasks = 1
			}
			want[usage.KeyShadow] = want[usage.KeyShadow].Plus(sum)
		}
	}
	found, err := w.raw.store.Usage(ctx, tenant, usage.DayOf(w.start), usage.DayOf(bubble.Now()), false, "", 1000)
	if err != nil {
		w.fail("cannot read the usage: %v", err)
	}
	got := map[string]usage.Sum{}
	for _, e := range found {
		got[e.Key] = got[e.Key].Plus(e.Sum)
		if (e.Key == usage.KeyShadow) && e.Model != copyModel || !slices.Contains([]string{modelID, spareModel, copyModel}, e.Model) {
			w.fail("the usage %+v is of another model", e)
		}
	}
	for key, sum := range want {
		if got[key] != sum {
			w.fail("the usage of %q is %+v, want %+v by the runs", key, got[key], sum)
		}
		delete(got, key)
	}
	if len(got) > 0 {
		w.fail("there is usage %+v of no run", got)
	}
}
