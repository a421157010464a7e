package orchestrator_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/artifact"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
)

// bytesOf returns an artifact with a text that is not JSON.
func bytesOf(text string) orchestrator.NewArtifact {
	return orchestrator.NewArtifact{Kind: "page", Bytes: &orchestrator.Bytes{
		MediaType: "text/plain", Content: strings.NewReader(text), Size: int64(len(text)),
	}}
}

// dying is a store that fails all writes of resources after the first left ones, as if the
// process had died.
type dying struct {
	port.Store
	left int
}

var errDead = errors.New("the process is dead")

// WriteResources implements port.Store.
func (d *dying) WriteResources(ctx context.Context, save, remove []port.Resource, notes ...port.Note) error {
	if d.left--; d.left < 0 {
		return errDead
	}
	return d.Store.WriteResources(ctx, save, remove, notes...)
}

// TestCrashBetweenContentAndRecord interrupts the creation of an artifact after its content was
// written. Clients do not see the artifact. A retry completes it, or else a sweep removes it.
func TestCrashBetweenContentAndRecord(t *testing.T) {
	t.Parallel()
	for _, repeated := range []bool{true, false} {
		h := setup(t)
		records := orchestrator.NewRecords(&dying{h.store, 1}, h.clock, slog.New(slog.DiscardHandler))
		crashed := orchestrator.NewArtifacts(records, h.outputs, func(int) string { return "nonce" }, h.config)
		if _, _, err := crashed.Create(t.Context(), client.Tenant, "test", bytesOf("<p>")); !errors.Is(err, errDead) {
			t.Fatalf("got %v, want the crash", err)
		}
		id, err := artifact.IDOf(strings.NewReader("<p>"))
		h.ok(err)
		if len(h.outputs.buckets[port.Accepted]) != 1 {
			t.Fatalf("got the objects %v, want the content", h.outputs.buckets[port.Accepted])
		}
		list, _, err := h.service.Artifacts.List(t.Context(), client, artifact.Filter{}, port.Page{Limit: 10})
		h.ok(err)
		if len(list) != 0 || h.artifactContent(id) != "" {
			t.Errorf("got %+v with the content %q, want nothing that a client sees", list, h.artifactContent(id))
		}
		if repeated {
			again, existing, err := h.service.Artifacts.Create(t.Context(), client.Tenant, "test", bytesOf("<p>"))
			h.ok(err)
			if existing || again.ID != id || h.artifactContent(id) != "<p>" || len(h.outputs.buckets[port.Accepted]) != 1 {
				t.Errorf("got %+v, existing %v, the objects %v, want one that the repetition completed", again, existing, h.outputs.buckets[port.Accepted])
			}
			continue
		}
		h.later(artifact.WritingLimit)
		h.ok(h.service.Sweep(t.Context(), 0))
		if len(h.outputs.buckets[port.Accepted]) != 0 {
			t.Errorf("got the objects %v, want them removed", h.outputs.buckets[port.Accepted])
		}
	}
}

func TestBytesOfTenantsAreSeparate(t *testing.T) {
	t.Parallel()
	h := setup(t)
	mine, _, err := h.service.Artifacts.Create(t.Context(), client.Tenant, "test", bytesOf("same"))
	h.ok(err)
	other := port.Identity{Tenant: "another"}
	if _, _, err := h.service.Artifacts.Artifact(t.Context(), other, mine.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v, want no artifact of another tenant", err)
	}
	theirs, existing, err := h.service.Artifacts.Create(t.Context(), other.Tenant, "test", bytesOf("same"))
	h.ok(err)
	if existing || theirs.ID != mine.ID || theirs.Key == mine.Key {
		t.Errorf("got %+v beside %+v, existing %v, want one of its own with the same id", theirs, mine, existing)
	}
	_, body, err := h.service.Artifacts.Artifact(t.Context(), other, mine.ID)
	h.ok(err)
	if text, err := io.ReadAll(body); err != nil || string(text) != "same" {
		t.Errorf("got %q, %v, want its content", text, err)
	}
}

func TestLargeBytesAreRefused(t *testing.T) {
	t.Parallel()
	h := setup(t)
	large := bytesOf("x")
	large.Bytes.Size = h.config.ArtifactLimit + 1
	if _, _, err := h.service.Artifacts.Create(t.Context(), client.Tenant, "test", large); !fault.Is(err, fault.TooLarge) {
		t.Errorf("got %v, want the size limit", err)
	}
}
