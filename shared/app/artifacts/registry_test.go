package artifacts_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/sqlitetest"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/app/artifacts"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/artifact"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

var client = port.Identity{Tenant: "local", Workspace: "local", Subject: "localhost"}

// The limits of the fixture.
const (
	retention = 48 * time.Hour
	sizeLimit = 1 << 20
)

// fixture is a registry with a store, a bucket and a clock that the test controls.
type fixture struct {
	*testing.T
	clock   *clock.Virtual
	store   port.Store
	outputs *fake.Outputs
	*artifacts.Registry
}

func setup(t *testing.T) *fixture {
	t.Helper()
	h := &fixture{T: t, clock: clock.NewVirtual(time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC))}
	db, err := sqlitetest.Open(t.Context(), filepath.Join(sqlitetest.Folder(t), "sortie.db"))
	h.ok(err)
	t.Cleanup(func() { _ = db.Close() })
	h.store, err = sqlite.NewStore(t.Context(), db, h.clock)
	h.ok(err)
	h.outputs = fake.NewOutputs(h.clock, nil)
	h.Registry = h.registry(h.store, h.outputs)
	return h
}

// registry returns another registry with the fixture's clock. The keys of its artifacts differ.
func (h *fixture) registry(store port.Store, outputs port.Outputs) *artifacts.Registry {
	n := 0
	random := func(int) string { n++; return fmt.Sprintf("%016d", n) }
	return artifacts.NewRegistry(store, outputs, h.clock, slog.New(slog.DiscardHandler), random, retention, sizeLimit)
}

func (h *fixture) ok(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// createArtifact stores an artifact.
func (h *fixture) createArtifact(content, parent string) artifact.Artifact {
	h.Helper()
	a, _, err := h.Create(h.Context(), client.Tenant, "test", artifact.Draft{Kind: "note", Content: []byte(content), Parent: parent})
	h.ok(err)
	return a
}

// later advances the clock.
func (h *fixture) later(d time.Duration) { h.clock.Advance(d) }

// sweep collects all artifacts that may have expired.
func (h *fixture) sweep() {
	h.Helper()
	for after := ""; ; {
		found, next, err := h.Expired(h.Context(), after, 10)
		h.ok(err)
		for _, ref := range found {
			h.ok(h.Collect(h.Context(), ref.Tenant, ref.ID))
		}
		if after = next; next == "" {
			return
		}
	}
}

// refusing is a bucket that fails each upload.
type refusing struct{ port.Outputs }

// Upload implements port.Outputs.
func (refusing) Upload(context.Context, port.Bucket, string, string, io.ReaderAt, int64) error {
	return fault.New(fault.Unavailable, "the object store does not answer")
}

// artifactContent returns the content of an artifact, empty for an unknown id.
func (h *fixture) artifactContent(id string) string {
	h.Helper()
	_, body, err := h.Artifact(h.Context(), client, id)
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
	h.later(retention - time.Hour)
	child := h.createArtifact(`"child"`, parent.ID)
	h.later(time.Hour)
	h.sweep()
	if h.artifactContent(parent.ID) != `"parent"` || h.artifactContent(child.ID) != `"child"` {
		t.Fatal("got a missing artifact, want a parent kept with its child")
	}
	h.later(retention - time.Hour)
	h.sweep() // the child
	if got := h.artifactContent(child.ID); got != "" {
		t.Errorf("got %s, want the expired child removed", got)
	}
	h.later(retention)
	h.sweep()
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
	h.later(retention - time.Second)
	h.createArtifact("1.0", "")
	h.later(time.Hour)
	h.sweep()
	if got := h.artifactContent(a.ID); got != "1" {
		t.Errorf("got %q, want the artifact whose retention started again", got)
	}
}

func TestUnfinishedArtifactIsInvisibleAndCollected(t *testing.T) {
	t.Parallel()
	h := setup(t)
	refused := h.registry(h.store, refusing{h.outputs})
	_, _, err := refused.Create(t.Context(), client.Tenant, "test", artifact.Draft{Kind: "note", Content: []byte(`"x"`)})
	if err == nil {
		t.Fatal("got no error, want that of the bucket")
	}
	list, _, err := h.List(t.Context(), client, artifact.Filter{}, port.Page{Limit: 10})
	h.ok(err)
	if len(list) != 0 {
		t.Errorf("got %+v, want no artifact without content", list)
	}
	h.later(artifact.WritingLimit)
	h.sweep()
	if due, _, err := h.store.ResourcesDue(t.Context(), "artifact", h.clock.Now().Add(time.Hour), "", 10); err != nil || len(due) != 0 {
		t.Errorf("got %v, %v, want no record", due, err)
	}
}
