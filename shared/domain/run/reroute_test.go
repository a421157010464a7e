package run_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/routing"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/domain/usage"
)

// drawRoutes returns the routes of a task from the pool "p0": fallbacks with random reasons and
// prices, of which some are unfit.
func drawRoutes(r *rand.Rand) routing.Routes {
	routes := routing.Routes{{Pool: "p0", Model: "m0", Engine: "mock", MaxTokens: 10, Prices: usage.Prices{OutputPrice: 5}}}
	for i := range r.IntN(5) {
		next := routing.Route{
			Pool: fmt.Sprint("p", i+1), From: routes[r.IntN(len(routes))].Pool, Model: fmt.Sprint("m", i+1), Engine: "mock",
			MaxTokens: 1 + r.IntN(20), Prices: usage.Prices{InputPrice: r.Int64N(9), OutputPrice: r.Int64N(9)},
		}
		for _, reason := range platform.FallbackReasons(true) {
			if r.IntN(3) > 0 {
				next.On = append(next.On, reason)
			}
		}
		if r.IntN(4) == 0 {
			next.Unfit = "no tools"
		}
		routes = append(routes, next)
	}
	return routes
}

// TestTaskUsesEachPoolOnce fails attempts of tasks with random routes until they end. A task enters
// no pool twice, and only a pool that fits, is open, and is a fallback for the reason.
func TestTaskUsesEachPoolOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		now := time.Unix(1e9, 0).UTC()
		task := run.Run{
			Tenant: "t", ID: "inf_1", TaskID: "inf_1", Slot: platform.Slot{Pool: "p0"}, Routes: drawRoutes(r), Trigger: run.TriggerRequest,
			Work:        spec.Work{Kind: spec.KindInference, Inference: &spec.Inference{Model: "m0", Engine: "mock", MaxTokens: 10, Within: time.Hour}},
			Policy:      spec.Policy{Retry: spec.Retry{MaxAttempts: 2, MaxFurtherStarts: 2}, QueueTimeout: time.Hour, TimeLimit: time.Hour, StartTimeout: time.Minute},
			Reservation: &run.Reservation{Held: budget.Amount{Turns: 1, Tokens: 1000, CostNano: 1e6, TimeMS: 1e6}, Scopes: []string{"tenant"}},
		}
		at, entered := run.New(task, now).Run, []string{"p0"}
		step := func(f run.Fact) {
			t.Helper()
			d, err := run.Decide(at, f, now)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			at = d.Run
		}
		for !at.State.Terminal() {
			step(run.Admitted{Pool: at.Slot.Pool, Limit: 9})
			n, pool := at.Attempt.Number, at.Slot.Pool
			step(run.WorkerContacted{Attempt: n, WorkerID: "w", Replica: "r1", Started: true})
			why := fault.New(fault.PoolUnavailable, "down")
			if r.IntN(3) == 0 {
				why = fault.New(fault.InvalidParams, "too long")
				why.Field = "prompt"
			}
			step(run.GenerationEnded{Attempt: n, Fault: why, Generation: &run.Generation{Replica: "r1", RequestedAt: now, DecodeMS: 3}})
			var closed []string
			if r.IntN(3) == 0 {
				closed = []string{"p1"}
			}
			step(run.GenerationSettled{Attempt: n, Closed: closed, Elsewhere: r.IntN(4) == 0})
			if at.State != run.Retrying {
				continue
			}
			reason, next := routing.ReasonOf(why), at.NextPool()
			step(run.Due{})
			if at.Slot.Pool != next {
				t.Fatalf("seed %d: got pool %s, want %s as announced", seed, at.Slot.Pool, next)
			}
			if next == pool {
				continue
			}
			to, _ := at.Routes.Of(next)
			if slices.Contains(entered, next) || slices.Contains(closed, next) || to.Unfit != "" || !slices.Contains(to.On, reason) || to.From != pool && to.From != "p0" {
				t.Fatalf("seed %d: got the fallback %+v after %v because of %s, closed are %v", seed, to, entered, reason, closed)
			}
			if at.Work.Inference.MaxTokens != to.MaxTokens || at.Work.Inference.ServedModel() != to.Model || at.Reservation.Prices != to.Prices || len(at.FailedReplicas) > 0 {
				t.Fatalf("seed %d: got %+v with %+v, want the model and the prices of %+v", seed, at.Work.Inference, at.Reservation, to)
			}
			entered = append(entered, next)
		}
		if at.State != run.Failed || !at.Reservation.Held.Zero() || at.Attempt.Number > 3*len(at.Routes) {
			t.Fatalf("seed %d: got %s in attempt %d holding %+v, want Failed with nothing held", seed, at.State, at.Attempt.Number, at.Reservation.Held)
		}
		if again := at.ForRetry(); again.Slot.Pool != "p0" || again.Work.Inference.ServedModel() != "m0" || again.Work.Inference.MaxTokens != 10 {
			t.Fatalf("seed %d: got %+v of a retry, want the work in pool p0", seed, again.Work.Inference)
		}
	}
}
