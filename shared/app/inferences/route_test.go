package inferences_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// falls saves the pools "pool0" of the model mock and "cloud" of the model big, with one replica
// each, r1 and c1. pool0 falls back to cloud for the reasons.
func falls(on ...platform.FallbackReason) func(*inferring) {
	return func(h *inferring) {
		h.Helper()
		h.engines["c1"] = mockengine.New(mockengine.Config{Clock: h.clock, Slots: 4})
		place := platform.EnginePlace{Kind: platform.EngineMock, Model: "big", Slots: 4, Replicas: []platform.EngineReplica{{ID: "c1"}}}
		h.ok(h.store.SavePool(h.Context(), platform.Pool{Tenant: client.Tenant, ID: "cloud", Limit: 4, QueueLimit: 2, Engine: &place}))
		own, err := h.store.LoadPool(h.Context(), platform.PoolRef{Tenant: client.Tenant, ID: "pool0"})
		h.ok(err)
		own.Fallbacks = []platform.Fallback{{Pool: "cloud", On: on}}
		h.ok(h.store.SavePool(h.Context(), own))
	}
}

// prices stores a model with a price in the catalog.
func (h *inferring) prices(id string, contextTokens int, p catalog.Price) {
	h.Helper()
	_, _, err := h.models.Create(h.Context(), client, id, catalog.Definition{
		Engines: []platform.EngineKind{platform.EngineMock}, Workloads: catalog.Workloads(), Price: p, ContextTokens: contextTokens,
	}, false)
	h.ok(err)
}

// cameFrom checks that a task has ended in pool cloud after one fallback for a reason.
func (h *inferring) cameFrom(task string, reason platform.FallbackReason) run.Run {
	h.Helper()
	events := h.read(task, inference.EventID{})
	if got := strings.ReplaceAll(names(events), "m", ""); got != "sttte" {
		h.Errorf("got events %q, want those of one answer", got)
	}
	r := h.ended(task)
	if r.State != run.Completed || r.Slot.Pool != "cloud" || r.TaskID != task || r.Detour == nil || len(r.Detour.Steps) != 1 {
		h.Fatalf("got %s in pool %s, %+v, want Completed in pool cloud after a fallback", r.State, r.Slot.Pool, r.Detour)
	}
	if s := r.Detour.Steps[0]; s.From != "pool0" || s.To != "cloud" || s.Reason != reason || s.Message == "" || r.Detour.Leaving {
		h.Errorf("got the fallback %+v, want one from pool0 to cloud because of %s", s, reason)
	}
	x, err := h.explains.ExplainRun(h.Context(), client, r.ID)
	h.ok(err)
	if len(x.FellBack) != 1 || x.FellBack[0].Reason != reason {
		h.Errorf("got the explanation %+v, want the fallback in it", x.Explanation)
	}
	return r
}

func TestTaskFallsBackBeforeItsFirstToken(t *testing.T) {
	t.Parallel()
	for _, how := range []mockengine.Failure{mockengine.FailStart, mockengine.FailBusy} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			h := newInferring(t, 1, 1, falls(platform.FallbackError))
			h.prices("mock", 0, catalog.Price{Output: 10})
			h.prices("big", 0, catalog.Price{Input: 3, Output: 1000})
			h.engines["r1"].FailNext(how, 0)
			task := h.ask(3, inSession("s"))
			r := h.cameFrom(task, platform.FallbackError)
			if r.Attempt.Number != 2 || r.Work.Inference.Model != "mock" || r.Work.Inference.ServedModel() != "big" {
				t.Errorf("got attempt %d of %+v, want the second one at the model big", r.Attempt.Number, r.Work.Inference)
			}
			used := r.Reservation.Used
			if want := int64(3*1000 + 3*min(r.Generation.TokensIn, r.Work.Inference.PromptTokens)); used.CostNano != want || !r.Reservation.Held.Zero() {
				t.Errorf("got %+v used and %+v held, want the price of the pool that answered, %d", used, r.Reservation.Held, want)
			}
			if a := h.account(budget.SessionScope("s")); a.Spent != used || !a.Held.Zero() {
				t.Errorf("got the account %+v, want %+v spent", a, used)
			}
		})
	}
}

// TestOtherReplicaComesBeforeTheFallback fails one of two replicas, and then both.
func TestOtherReplicaComesBeforeTheFallback(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 2, 1, falls(platform.FallbackError))
	fail := func(replicas ...string) {
		for _, r := range replicas {
			h.engines[r].FailNext(mockengine.FailStart, 0)
		}
	}
	fail("r1", "r2")
	h.cameFrom(h.ask(3), platform.FallbackError)
	h.clock.Advance(time.Hour)
	h.engines["c1"].FailNext(mockengine.FailStart, 0)
	fail("r1")
	r := h.ended(h.ask(3))
	if r.State != run.Completed || r.Slot.Pool != "pool0" || r.Detour != nil {
		t.Errorf("got %s in pool %s, want Completed in pool0 at the other replica", r.State, r.Slot.Pool)
	}
}

func TestPoolWithoutAReadyReplicaIsLeftAtOnce(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1, falls(platform.FallbackError))
	h.engines["r1"].SetLoading(true)
	if r := h.cameFrom(h.ask(3), platform.FallbackError); r.Attempt.Number != 2 {
		t.Errorf("got an answer in attempt %d, want 2", r.Attempt.Number)
	}
}

func TestNothingFollowsAToken(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1, falls(platform.FallbackReasons(true)...))
	h.engines["r1"].FailNext(mockengine.FailReset, 1)
	r := h.ended(h.ask(3))
	if r.State != run.Failed || r.Detour != nil || r.Attempt.Number != 1 {
		t.Errorf("got %s in attempt %d with %+v, want Failed in attempt 1", r.State, r.Attempt.Number, r.Detour)
	}
}

// TestEachPoolIsUsedOnce fails every request. The reason error does not apply to a pool that is
// only for full queues.
func TestEachPoolIsUsedOnce(t *testing.T) {
	t.Parallel()
	for _, on := range []platform.FallbackReason{platform.FallbackError, platform.FallbackQueue} {
		h := newInferring(t, 1, 1, falls(on))
		for range 9 {
			h.engines["r1"].FailNext(mockengine.FailStart, 0)
			h.engines["c1"].FailNext(mockengine.FailStart, 0)
		}
		stop := h.passes(time.Second)
		r := h.ended(h.ask(3))
		stop()
		steps := 0
		if r.Detour != nil {
			steps = len(r.Detour.Steps)
		}
		if want := on == platform.FallbackError; r.State != run.Failed || (steps == 1) != want {
			t.Errorf("%s: got %s after %d fallbacks, want Failed and one only for errors", on, r.State, steps)
		}
	}
}

func TestFullQueueUsesTheFallback(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1, falls(platform.FallbackQueue), func(h *inferring) {
		own, err := h.store.LoadPool(h.Context(), platform.PoolRef{Tenant: client.Tenant, ID: "pool0"})
		h.ok(err)
		own.QueueLimit = 1
		h.ok(h.store.SavePool(h.Context(), own))
	})
	h.engines["r1"].FailNext(mockengine.FailStall, 0)
	h.ask(3)
	h.engines["r1"].WaitRunning(1)
	h.ask(3)
	h.cameFrom(h.ask(3), platform.FallbackQueue)
	for range 4 {
		h.engines["c1"].FailNext(mockengine.FailStall, 0)
	}
	for range 6 {
		h.ask(3)
	}
	if f := h.refused(3); f.Code != fault.AdmissionReject || !strings.Contains(f.Message, "pool0") {
		t.Errorf("got %v of two full queues, want ADMISSION_REJECT of pool0", f)
	}
}

func TestLongPromptUsesTheFallback(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1, falls(platform.FallbackContext))
	h.prices("mock", 64, catalog.Price{Output: 10})
	h.prices("big", 4096, catalog.Price{Output: 1000})
	long := func(in *inferences.NewTask) { in.Request.Prompt = strings.Repeat("word ", 200) }
	r := h.cameFrom(h.ask(3, long), platform.FallbackContext)
	if r.Attempt.Number != 1 || r.Reservation.Used.CostNano != 3000 {
		t.Errorf("got attempt %d and %+v, want the first one at the price of big", r.Attempt.Number, r.Reservation.Used)
	}
	if f := h.refused(3, func(in *inferences.NewTask) { in.Request.Prompt = strings.Repeat("word ", 9000) }); f.Code != fault.InvalidParams || f.Field != port.FieldPrompt {
		t.Errorf("got %v of a prompt that is too long for both, want INVALID_PARAMS of the prompt", f)
	}
}

// TestFallbackOfAKeyHasItsModels has a key that may use the model of the pool, not that of the
// fallback.
func TestFallbackOfAKeyHasItsModels(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1, falls(platform.FallbackError))
	h.engines["r1"].FailNext(mockengine.FailStart, 0)
	task := h.ask(3, byKey("alice", access.Grant{Models: []string{"mock"}}))
	h.read(task, inference.EventID{})
	r := h.ended(task)
	if r.Slot.Pool != "pool0" || len(r.Routes) != 2 || !strings.Contains(r.Routes[1].Unfit, `may not use the model "big"`) {
		t.Errorf("got pool %s with the routes %+v, want no fallback", r.Slot.Pool, r.Routes)
	}
}
