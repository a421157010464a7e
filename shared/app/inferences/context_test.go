package inferences_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// sized is an engine that reports a given context length.
type sized struct {
	port.Engine

	tokens *atomic.Int64
}

// Capabilities implements port.Engine.
func (e sized) Capabilities(ctx context.Context) (port.EngineCapabilities, error) {
	found, err := e.Engine.Capabilities(ctx)
	found.ContextTokens = int(e.tokens.Load())
	return found, err
}

// newSized starts a dispatcher with an engine that has a context of a number of tokens, and adds
// its model to the catalog.
func newSized(t *testing.T, tokens, inCatalog int) (h *inferring, engine *atomic.Int64) {
	t.Helper()
	engine = new(atomic.Int64)
	engine.Store(int64(tokens))
	h = newInferring(t, 1, 4, func(h *inferring) { h.wrap = func(e port.Engine) port.Engine { return sized{e, engine} } })
	_, _, err := h.models.Create(t.Context(), client, "mock", catalog.Definition{
		Engines: []platform.EngineKind{platform.EngineMock}, ContextTokens: inCatalog, Workloads: []port.Workload{port.WorkloadCompletion},
	}, false)
	h.ok(err)
	return h, engine
}

func withContext(tokens int) func(*inferences.NewTask) {
	return func(in *inferences.NewTask) { in.Request.Context = tokens }
}

// longest returns the context that GET /v1/capabilities shows.
func (h *inferring) longest() int {
	h.Helper()
	found, err := h.pools.Capabilities(h.Context(), client)
	h.ok(err)
	if len(found) != 1 {
		h.Fatalf("got %+v, want the capability of one engine", found)
	}
	return found[0].ContextTokens
}

func TestContextIsThatOfTheEngine(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name                          string
		engine, inCatalog, want, over int
	}{
		{"long", 131072, 0, 131072, 131073},
		{"short", 4096, 0, 4096, 8192},
		{"limited by the catalog", 131072, 65536, 65536, 100_000},
		{"shorter than in the catalog", 4096, 65536, 4096, 8192},
		{"unknown", 0, 0, 32768, 32769},
		{"only in the catalog", 0, 65536, 65536, 65537},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			h, _ := newSized(t, row.engine, row.inCatalog)
			if got := h.longest(); got != row.want {
				t.Errorf("got a context of %d tokens in the capabilities, want %d", got, row.want)
			}
			if f := h.refused(1, withContext(row.over)); f.Code != fault.InvalidParams || f.Field != "ctx" {
				t.Errorf("got %s with the field %q for ctx %d, want %s with the field ctx", f.Code, f.Field, row.over, fault.InvalidParams)
			}
			if r := h.ended(h.ask(1, withContext(row.want))); r.State != run.Completed {
				t.Errorf("got %s for ctx %d, want Completed", r.State, row.want)
			}
		})
	}
}

// TestContextFollowsTheEngine restarts an engine with another context. The engine is asked
// after a minute, and by the next attempt after a failure. No admission waits for its answer.
func TestContextFollowsTheEngine(t *testing.T) {
	t.Parallel()
	h, engine := newSized(t, 4096, 0)
	if got := h.longest(); got != 4096 {
		t.Fatalf("got a context of %d tokens, want 4096", got)
	}
	engine.Store(131072)
	h.refused(1, withContext(100_000))
	h.clock.Advance(time.Minute)
	h.refused(1, withContext(100_000)) // the engine is asked in the background
	for {
		accepted, err := h.tasks.Create(t.Context(), inferences.NewTask{
			Identity: client, Model: "mock", Workload: port.WorkloadCompletion, Request: inference.Request{Prompt: "count", Context: 100_000}, MaxTokens: 1,
		})
		if err == nil {
			h.ended(accepted.Run.TaskID)
			break
		}
		runtime.Gosched()
	}
	engine.Store(8192)
	h.engines["r1"].FailNext(mockengine.FailStart, 0)
	if r := h.ended(h.ask(1)); r.State != run.Completed || r.Attempt.Number != 2 {
		t.Errorf("got %s in attempt %d, want Completed in the second one", r.State, r.Attempt.Number)
	}
	if got := h.longest(); got != 8192 {
		t.Errorf("got a context of %d tokens after a failure, want 8192", got)
	}
	h.refused(1, withContext(100_000))
}

// TestTaskGoesToAPoolWithItsContext checks that a task gets a pool of its model whose context
// fits the task and its prompt. If the context of no pool fits, the pool with the largest one
// refuses the task.
func TestTaskGoesToAPoolWithItsContext(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 4, func(h *inferring) {
		h.engines["long"] = mockengine.New(mockengine.Config{Clock: h.clock, Slots: 4, ContextTokens: 131072})
		h.engines["r1"] = mockengine.New(mockengine.Config{Clock: h.clock, Slots: 4, ContextTokens: 1024})
	})
	place := platform.EnginePlace{Kind: platform.EngineMock, Model: "mock", Slots: 4, Replicas: []platform.EngineReplica{{ID: "long"}}}
	h.ok(h.store.SavePool(t.Context(), platform.Pool{Tenant: client.Tenant, ID: "pool1", Limit: 4, QueueLimit: 10, Engine: &place}))
	for _, id := range []string{"pool0", "pool1"} {
		p, err := h.store.LoadPool(t.Context(), platform.PoolRef{Tenant: client.Tenant, ID: id})
		h.ok(err)
		h.sweeper.Describe(t.Context(), p)
	}
	prompt := func(in *inferences.NewTask) { in.Request = inference.Request{Prompt: string(make([]byte, 8192))} }
	for name, change := range map[string]func(*inferences.NewTask){"ctx": withContext(2048), "prompt": prompt} {
		if r := h.ended(h.ask(1, change)); r.Slot.Pool != "pool1" || r.State != run.Completed {
			t.Errorf("%s: got %s in %s, want Completed in pool1", name, r.State, r.Slot.Pool)
		}
	}
	if f := h.refused(1, withContext(131073)); f.Field != "ctx" {
		t.Errorf("got %v of field %q, want ctx", f, f.Field)
	}
	r := h.ended(h.ask(0, withContext(100_000)))
	if r.Work.Inference.MaxTokens != inference.MaxTokens {
		t.Errorf("got max_tokens %d without a request for it, want %d", r.Work.Inference.MaxTokens, inference.MaxTokens)
	}
}
