package engine_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/engine"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// silent sends the start of an answer, and nothing more until the request is closed.
func silent(contentType, begun string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server detects the end of a request after it has read the body
		if begun != "" {
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, begun)
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}
}

// TestSilentAnswers checks that data before the first piece does not count as a piece. The end
// of the caller's context is no failure of the engine.
func TestSilentAnswers(t *testing.T) {
	t.Parallel()
	limits := port.GenerationLimits{First: 50 * time.Millisecond, Gap: time.Hour, Total: time.Hour}
	calls := map[string]func(context.Context, *engine.Engine, port.GenerationLimits) error{
		"completion": func(ctx context.Context, e *engine.Engine, limits port.GenerationLimits) error {
			_, err := e.Generate(ctx, port.Generation{Prompt: "x", MaxTokens: 8, Limits: limits}, func(port.Piece) error { return nil })
			return err
		},
		"embedding": func(ctx context.Context, e *engine.Engine, limits port.GenerationLimits) error {
			_, err := e.Embed(ctx, port.Embedding{Inputs: []string{"x"}, Limits: limits})
			return err
		},
		"rerank": func(ctx context.Context, e *engine.Engine, limits port.GenerationLimits) error {
			_, err := e.Rerank(ctx, port.Reranking{Query: "x", Documents: []string{"x"}, Limits: limits})
			return err
		},
	}
	for _, row := range []struct{ name, workload, contentType, begun string }{
		{"completion without a header", "completion", "", ""},
		{"completion with a comment", "completion", "text/event-stream", ": ping\n\n"},
		{"completion with an event without text", "completion", "text/event-stream", "data: " + `{"choices":[{"text":"","finish_reason":null}]}` + "\n\n"},
		{"embedding without a header", "embedding", "", ""},
		{"half an embedding", "embedding", "application/json", `{"data":[`},
		{"rerank without a header", "rerank", "", ""},
		{"half a rerank", "rerank", "application/json", `{"results":[`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			e := serve(t, engine.Config{Kind: platform.EngineVLLM}, silent(row.contentType, row.begun))
			if err := calls[row.workload](t.Context(), e, limits); !fault.Is(err, fault.DecodeTimeout) {
				t.Errorf("got %v, want DecodeTimeout", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := calls[row.workload](ctx, e, port.GenerationLimits{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want the error of the context", err)
			}
		})
	}
}
