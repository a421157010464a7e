package inferences_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/artifact"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestTranscriptOfALongSessionID(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	session := strings.Repeat("s", 128)
	r := h.ended(h.ask(2, inSession(session)))
	if r.State != run.Completed || r.Generation.Trace == "" {
		t.Fatalf("got %s with %+v, want Completed with a transcript", r.State, r.Generation)
	}
	found, _, err := h.artifacts.List(t.Context(), client, artifact.Filter{Tag: "session:" + session}, port.Page{Limit: 10})
	h.ok(err)
	if len(found) != 1 || found[0].ID != r.Generation.Trace {
		t.Errorf("got %+v, want the transcript under the tag of its session", found)
	}
}

// verbose is an engine whose version exceeds the size limit of the metadata of a transcript.
type verbose struct{ port.Engine }

func (v verbose) Capabilities(ctx context.Context) (port.EngineCapabilities, error) {
	found, err := v.Engine.Capabilities(ctx)
	if err != nil {
		return found, fmt.Errorf("cannot ask the engine: %w", err)
	}
	found.Version = strings.Repeat("v", artifact.MaxMetadata)
	return found, nil
}

// TestTranscriptThatIsRefused: a task whose transcript is refused completes, and its slot is
// free.
func TestTranscriptThatIsRefused(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1, func(h *inferring) { h.wrap = func(e port.Engine) port.Engine { return verbose{e} } })
	for range 2 {
		r := h.ended(h.ask(3))
		if r.State != run.Completed || r.Generation.Trace != "" {
			t.Fatalf("got %s with the transcript %q, want Completed without one", r.State, r.Generation.Trace)
		}
		if events, err := h.tasks.Stored(t.Context(), client, r); !fault.Is(err, fault.CursorExpired) {
			t.Errorf("got %d stored events (%v), want CURSOR_EXPIRED", len(events), err)
		}
	}
}
