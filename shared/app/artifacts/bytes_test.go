package artifacts_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/artifact"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// bytesOf returns an artifact with a text that is not JSON.
func bytesOf(text string) artifact.Draft {
	return artifact.Draft{Kind: "page", Bytes: &artifact.Bytes{
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
		crashed := h.registry(&dying{h.store, 1}, h.outputs)
		if _, _, err := crashed.Create(t.Context(), client.Tenant, "test", bytesOf("<p>")); !errors.Is(err, errDead) {
			t.Fatalf("got %v, want the crash", err)
		}
		id, err := artifact.IDOf(strings.NewReader("<p>"))
		h.ok(err)
		if h.outputs.Count(port.Accepted) != 1 {
			t.Fatalf("got %d objects, want the content", h.outputs.Count(port.Accepted))
		}
		list, _, err := h.List(t.Context(), client, artifact.Filter{}, port.Page{Limit: 10})
		h.ok(err)
		if len(list) != 0 || h.artifactContent(id) != "" {
			t.Errorf("got %+v with the content %q, want nothing that a client sees", list, h.artifactContent(id))
		}
		if repeated {
			again, existing, err := h.Create(t.Context(), client.Tenant, "test", bytesOf("<p>"))
			h.ok(err)
			if existing || again.ID != id || h.artifactContent(id) != "<p>" || h.outputs.Count(port.Accepted) != 1 {
				t.Errorf("got %+v, existing %v, %d objects, want one that the repetition completed", again, existing, h.outputs.Count(port.Accepted))
			}
			continue
		}
		h.later(artifact.WritingLimit)
		h.sweep()
		if h.outputs.Count(port.Accepted) != 0 {
			t.Errorf("got %d objects, want them removed", h.outputs.Count(port.Accepted))
		}
	}
}

func TestBytesOfTenantsAreSeparate(t *testing.T) {
	t.Parallel()
	h := setup(t)
	mine, _, err := h.Create(t.Context(), client.Tenant, "test", bytesOf("same"))
	h.ok(err)
	other := port.Identity{Tenant: "another"}
	if _, _, err := h.Artifact(t.Context(), other, mine.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v, want no artifact of another tenant", err)
	}
	theirs, existing, err := h.Create(t.Context(), other.Tenant, "test", bytesOf("same"))
	h.ok(err)
	if existing || theirs.ID != mine.ID || theirs.Key == mine.Key {
		t.Errorf("got %+v beside %+v, existing %v, want one of its own with the same id", theirs, mine, existing)
	}
	_, body, err := h.Artifact(t.Context(), other, mine.ID)
	h.ok(err)
	if text, err := io.ReadAll(body); err != nil || string(text) != "same" {
		t.Errorf("got %q, %v, want its content", text, err)
	}
}

func TestLargeBytesAreRefused(t *testing.T) {
	t.Parallel()
	h := setup(t)
	large := bytesOf("x")
	large.Bytes.Size = sizeLimit + 1
	if _, _, err := h.Create(t.Context(), client.Tenant, "test", large); !fault.Is(err, fault.TooLarge) {
		t.Errorf("got %v, want the size limit", err)
	}
}
