package orchestrator_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/artifact"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
)

// createArtifact stores an artifact.
func (h *fixture) createArtifact(content, parent string) artifact.Artifact {
	h.Helper()
	a, _, err := h.service.Artifacts.Create(h.Context(), client.Tenant, "test", orchestrator.NewArtifact{Kind: "note", Content: []byte(content), Parent: parent})
	h.ok(err)
	return a
}

// later advances the clock.
func (h *fixture) later(d time.Duration) { h.clock.now = h.clock.now.Add(d) }

// refusing is a bucket that fails each upload.
type refusing struct{ port.Outputs }

// Upload implements port.Outputs.
func (refusing) Upload(context.Context, port.Bucket, string, string, io.ReaderAt, int64) error {
	return fault.New(fault.Unavailable, "the object store does not answer")
}

// artifactContent returns the content of an artifact, empty for an unknown id.
func (h *fixture) artifactContent(id string) string {
	h.Helper()
	_, body, err := h.service.Artifacts.Artifact(h.Context(), client, id)
	if f := fault.Of(err); f != nil && f.Code == fault.NotFound {
		return ""
	}
	h.ok(err)
	text, err := io.ReadAll(body)
	h.ok(err)
	h.ok(body.Close())
	return string(text)
}

func TestExpiredArtifactIsRemovedUnlessItIsAParent(t *testing.T) {
	t.Parallel()
	h := setup(t)
	parent := h.createArtifact(`"parent"`, "")
	h.later(h.config.Policy.RecordRetention - time.Hour)
	child := h.createArtifact(`"child"`, parent.ID)
	h.later(time.Hour)
	h.ok(h.service.Sweep(t.Context(), 0))
	if h.artifactContent(parent.ID) != `"parent"` || h.artifactContent(child.ID) != `"child"` {
		t.Fatal("got a missing artifact, want a parent kept with its child")
	}
	h.later(h.config.Policy.RecordRetention - time.Hour)
	h.ok(h.service.Sweep(t.Context(), 0)) // the child
	if got := h.artifactContent(child.ID); got != "" {
		t.Errorf("got %s, want the expired child removed", got)
	}
	h.later(h.config.Policy.RecordRetention)
	h.ok(h.service.Sweep(t.Context(), 0))
	if got := h.artifactContent(parent.ID); got != "" {
		t.Errorf("got %s, want the parent removed after its child", got)
	}
	for _, a := range []artifact.Artifact{parent, child} {
		if _, _, err := h.outputs.Open(t.Context(), port.Accepted, a.Key, port.Span{}); err == nil {
			t.Errorf("got the content of %s, want it deleted from the bucket", a.ID)
		}
	}
	if again := h.createArtifact(`"child"`, ""); again.ID != child.ID || again.Key == child.Key || h.artifactContent(again.ID) != `"child"` {
		t.Errorf("got %+v, want the same id with a key of its own", again)
	}
}

func TestRepeatedArtifactIsKept(t *testing.T) {
	t.Parallel()
	h := setup(t)
	a := h.createArtifact("1", "")
	h.later(h.config.Policy.RecordRetention - time.Second)
	h.createArtifact("1.0", "")
	h.later(time.Hour)
	h.ok(h.service.Sweep(t.Context(), 0))
	if got := h.artifactContent(a.ID); got != "1" {
		t.Errorf("got %q, want the artifact whose retention started again", got)
	}
}

func TestUnfinishedArtifactIsInvisibleAndCollected(t *testing.T) {
	t.Parallel()
	h := setup(t)
	records := orchestrator.NewRecords(h.store, h.clock, slog.New(slog.DiscardHandler))
	refused := orchestrator.NewArtifacts(records, refusing{h.outputs}, func(int) string { return "nonce" }, h.config)
	_, _, err := refused.Create(t.Context(), client.Tenant, "test", orchestrator.NewArtifact{Kind: "note", Content: []byte(`"x"`)})
	if err == nil {
		t.Fatal("got no error, want that of the bucket")
	}
	list, _, err := h.service.Artifacts.List(t.Context(), client, artifact.Filter{}, port.Page{Limit: 10})
	h.ok(err)
	if len(list) != 0 {
		t.Errorf("got %+v, want no artifact without content", list)
	}
	h.later(artifact.WritingLimit)
	h.ok(h.service.Sweep(t.Context(), 0))
	if due, _, err := h.store.ResourcesDue(t.Context(), "artifact", h.clock.Now().Add(time.Hour), "", 10); err != nil || len(due) != 0 {
		t.Errorf("got %v, %v, want no record", due, err)
	}
}
