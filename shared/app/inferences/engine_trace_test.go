package inferences_test

import (
	"context"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/trace"
	"github.com/sortie-dev/sortie/shared/port"
)

// tracedEngine keeps the trace context of the last request for an answer.
type tracedEngine struct {
	port.Engine

	mu   sync.Mutex
	seen string
}

func (e *tracedEngine) see(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = port.TraceParent(ctx)
}

func (e *tracedEngine) Generate(ctx context.Context, g port.Generation, each func(port.Piece) error) (port.GenerationEnd, error) {
	e.see(ctx)
	return e.Engine.Generate(ctx, g, each)
}

func (e *tracedEngine) Embed(ctx context.Context, request port.Embedding) (port.Embedded, error) {
	e.see(ctx)
	return e.Engine.Embed(ctx, request)
}

func (e *tracedEngine) Rerank(ctx context.Context, request port.Reranking) (port.Ranked, error) {
	e.see(ctx)
	return e.Engine.Rerank(ctx, request)
}

// TestEngineIsInTheTraceOfTheTask: each request to an engine has the span of the attempt in the
// trace of the client.
func TestEngineIsInTheTraceOfTheTask(t *testing.T) {
	t.Parallel()
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for workload, request := range map[port.Workload]inference.Request{
		port.WorkloadCompletion: {Prompt: "a"},
		port.WorkloadEmbedding:  {Input: []string{"a", "b"}},
		port.WorkloadRerank:     {Query: "a", Input: []string{"a", "b"}},
	} {
		t.Run(string(workload), func(t *testing.T) {
			t.Parallel()
			engine := &tracedEngine{}
			h := newInferring(t, 1, 1, func(h *inferring) {
				h.wrap = func(e port.Engine) port.Engine {
					engine.Engine = e
					return engine
				}
			})
			r := h.ended(h.ask(3, func(in *inferences.NewTask) { in.Workload, in.Request, in.TraceParent = workload, request, parent }))
			engine.mu.Lock()
			defer engine.mu.Unlock()
			got, ok := trace.Parse(engine.seen)
			client, _ := trace.Parse(parent)
			if r.State != run.Completed || !ok || got.Trace != client.Trace || got != trace.OfEngine(r) {
				t.Errorf("got the context %q in a task that ended as %s, want %s", engine.seen, r.State, trace.OfEngine(r))
			}
		})
	}
}
