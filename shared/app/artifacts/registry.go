package artifacts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/artifact"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// artifactKind is the kind of the resources of artifacts.
const artifactKind = "artifact"

// Registry stores content-addressed documents of tenants. The content is in the bucket of
// accepted outputs, the record in the store. It is safe for concurrent use.
//
// The record is stored before the content and removed after it, so that no content is without a
// record. Each record has an object key of its own, so that the removal of an artifact cannot
// delete the content of a later one with the same id.
type Registry struct {
	store     port.ResourceStore
	outputs   port.Outputs
	clock     clock.Clock
	log       *slog.Logger
	random    func(n int) string
	retention time.Duration
	limit     int64
}

// NewRegistry returns the artifacts in a store and a bucket. random returns n random bytes
// in hexadecimal. An artifact is kept for the retention after its last creation. limit is Limit.
func NewRegistry(
	store port.ResourceStore, outputs port.Outputs, c clock.Clock, log *slog.Logger, random func(n int) string, retention time.Duration, limit int64,
) *Registry {
	return &Registry{store, outputs, c, log, random, retention, limit}
}

func (s *Registry) now() time.Time { return clock.UTC(s.clock) }

// Limit returns the maximum size in bytes of an artifact that is not JSON.
func (s *Registry) Limit() int64 { return s.limit }

// Create stores an artifact of a tenant, and returns after it is durable. If the tenant already
// has an artifact with this content, Create sets existing and returns that one with its own
// kind, tags, parent and metadata. The retention of that artifact starts again. by names the
// creator. Faults: InvalidRequest with the field, TooLarge, Unprocessable for an unknown
// parent.
func (s *Registry) Create(ctx context.Context, tenant, by string, in artifact.Draft) (a artifact.Artifact, existing bool, err error) {
	if err := in.Check(); err != nil {
		return a, false, err
	}
	id, content, err := s.contentOf(in)
	if err != nil {
		return a, false, err
	}
	for range port.CommitTries {
		stored, err := s.load(ctx, tenant, id)
		if err == nil && stored.State == artifact.Stored {
			renewed, worth := stored.Renew(s.now(), s.retention)
			if worth {
				err = s.store.WriteResources(ctx, []port.Resource{storedArtifact{renewed, stored.version}.resource()}, nil)
			}
			if !errors.Is(err, port.ErrConflict) {
				return renewed, true, err
			}
			continue
		}
		if err == nil && stored.State == artifact.Removing {
			if err := s.remove(ctx, stored); err != nil && !errors.Is(err, port.ErrConflict) {
				return a, false, err
			}
			continue
		}
		if err != nil && !errors.Is(err, port.ErrNotFound) {
			return a, false, fmt.Errorf("cannot read the artifact: %w", err)
		}
		if err != nil {
			now := s.now()
			stored = storedArtifact{Artifact: artifact.Artifact{
				Tenant: tenant, ID: id, State: artifact.Writing, Size: content.Size, Key: limit.ArtifactKey(tenant, id, s.random(8)),
				CreatedAt: now, ExpiresAt: now.Add(artifact.WritingLimit),
			}}
		}
		// An earlier request that has not finished may have had other tags.
		stored.Kind, stored.Tags, stored.Parent, stored.Metadata, stored.CreatedBy = in.Kind, in.Tags, in.Parent, in.Metadata, by
		stored.MediaType = ""
		if in.Bytes != nil {
			stored.MediaType = in.Bytes.MediaType
		}
		a, err = s.fill(ctx, stored, content)
		if errors.Is(err, port.ErrConflict) {
			continue
		}
		if err == nil {
			s.log.InfoContext(ctx, "artifact created", "tenant", tenant, "artifact", id, "kind", a.Kind, "bytes", a.Size)
		}
		return a, false, err
	}
	return a, false, fault.New(fault.Unavailable, "too many concurrent changes of the artifact; retry")
}

// contentOf returns the content of an artifact and its id. Faults: InvalidRequest, TooLarge.
func (s *Registry) contentOf(in artifact.Draft) (id string, content *artifact.Bytes, err error) {
	if in.Bytes != nil {
		if in.Bytes.Size > s.limit {
			return "", nil, fault.New(fault.TooLarge, "content of %d bytes, want at most %d", in.Bytes.Size, s.limit)
		}
		id, err = artifact.IDOf(in.Bytes.Reader())
		return id, in.Bytes, err
	}
	canonical, id, err := artifact.Canonical(in.Content)
	if err != nil {
		return "", nil, fault.Wrap(err, fault.InvalidRequest, "content: want JSON with unique names and numbers in the range of a double (RFC 8785)")
	}
	if len(canonical) > artifact.MaxSize {
		return "", nil, fault.New(fault.TooLarge, "content of %d bytes, want at most %d", len(canonical), artifact.MaxSize)
	}
	return id, &artifact.Bytes{MediaType: artifact.TypeJSON, Content: bytes.NewReader(canonical), Size: int64(len(canonical))}, nil
}

// fill stores the record of an artifact in the state Writing, then the content, then the record
// in the state Stored.
func (s *Registry) fill(ctx context.Context, stored storedArtifact, content *artifact.Bytes) (artifact.Artifact, error) {
	if stored.version == 0 {
		if _, err := s.parentOf(ctx, stored); err != nil {
			return artifact.Artifact{}, err
		}
		if err := s.store.WriteResources(ctx, []port.Resource{stored.resource()}, nil); err != nil {
			return artifact.Artifact{}, fmt.Errorf("cannot store the artifact: %w", err)
		}
		stored.version = 1
	}
	if err := s.outputs.Upload(ctx, port.Accepted, stored.Key, content.MediaType, content.Content, content.Size); err != nil {
		return artifact.Artifact{}, fmt.Errorf("cannot store the content of the artifact: %w", err)
	}
	save, err := s.parentOf(ctx, stored)
	if err != nil {
		return artifact.Artifact{}, err
	}
	for i := range save {
		save[i].Children++
	}
	stored.Counted = stored.Parent != ""
	stored.State, stored.ExpiresAt = artifact.Stored, s.now().Add(s.retention)
	if err := s.store.WriteResources(ctx, resources(append(save, stored)), nil); err != nil {
		return artifact.Artifact{}, fmt.Errorf("cannot store the artifact: %w", err)
	}
	return stored.Artifact, nil
}

// parentOf returns the parent of an artifact; no element without one. Fault: Unprocessable if
// the parent is not stored or is the artifact itself.
func (s *Registry) parentOf(ctx context.Context, a storedArtifact) ([]storedArtifact, error) {
	if a.Parent == "" {
		return nil, nil
	}
	parent, err := s.load(ctx, a.Tenant, a.Parent)
	if errors.Is(err, port.ErrNotFound) || err == nil && parent.State != artifact.Stored || a.Parent == a.ID {
		f := fault.New(fault.Unprocessable, "parent: no such artifact, want the id of another stored artifact")
		f.Field = "parent"
		return nil, f
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the parent of the artifact: %w", err)
	}
	return []storedArtifact{parent}, nil
}

// storedArtifact is an artifact with the version of its record.
type storedArtifact struct {
	artifact.Artifact
	version int64
}

func artifactRef(tenant, id string) port.ResourceRef {
	return port.ResourceRef{Tenant: tenant, Kind: artifactKind, ID: id}
}

func (a storedArtifact) resource() port.Resource {
	document, err := json.Marshal(a.Artifact)
	if err != nil {
		panic(fmt.Sprintf("cannot encode an artifact: %v", err)) // its metadata was decoded
	}
	return port.Resource{
		ResourceRef: artifactRef(a.Tenant, a.ID), Version: a.version, Labels: a.Labels(), CreatedAt: a.CreatedAt, DueAt: a.ExpiresAt, Document: document,
	}
}

func resources(artifacts []storedArtifact) []port.Resource {
	all := make([]port.Resource, len(artifacts))
	for i, a := range artifacts {
		all[i] = a.resource()
	}
	return all
}

func artifactIn(r port.Resource) (a storedArtifact, err error) {
	if err := json.Unmarshal(r.Document, &a.Artifact); err != nil {
		return a, fault.Wrap(err, fault.Internal, "unreadable record of artifact %s", r.ID)
	}
	a.version = r.Version
	return a, nil
}

// load reads an artifact in any state. It returns port.ErrNotFound for an unknown id.
func (s *Registry) load(ctx context.Context, tenant, id string) (storedArtifact, error) {
	r, err := s.store.LoadResource(ctx, artifactRef(tenant, id))
	if err != nil {
		return storedArtifact{}, err
	}
	return artifactIn(r)
}

// Artifact returns an artifact of the caller's tenant and its content as a stream, which
// the caller closes. id may be a digest. Fault: NotFound.
func (s *Registry) Artifact(ctx context.Context, who port.Identity, id string) (artifact.Artifact, io.ReadCloser, error) {
	a, err := s.Record(ctx, who, id)
	if err != nil {
		return artifact.Artifact{}, nil, err
	}
	content, err := s.Open(ctx, a, port.Span{})
	return a, content, err
}

// Open returns a part of the content of an artifact as a stream, which the caller closes; the
// zero span is the whole. Fault: NotFound if it was removed meanwhile.
func (s *Registry) Open(ctx context.Context, a artifact.Artifact, span port.Span) (io.ReadCloser, error) {
	content, _, err := s.outputs.Open(ctx, port.Accepted, a.Key, span)
	if errors.Is(err, port.ErrNotFound) {
		return nil, noArtifact()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the content of the artifact: %w", err)
	}
	return content, nil
}

// Record returns an artifact of the caller's tenant. id may be a digest. Fault: NotFound.
func (s *Registry) Record(ctx context.Context, who port.Identity, id string) (artifact.Artifact, error) {
	if id = artifact.ParseID(id); !artifact.ValidID(id) {
		return artifact.Artifact{}, noArtifact()
	}
	a, err := s.load(ctx, who.Tenant, id)
	if errors.Is(err, port.ErrNotFound) || err == nil && a.State != artifact.Stored {
		return artifact.Artifact{}, noArtifact()
	}
	if err != nil {
		return artifact.Artifact{}, fmt.Errorf("cannot read the artifact: %w", err)
	}
	return a.Artifact, nil
}

func noArtifact() error { return fault.New(fault.NotFound, "no such artifact, or it has expired") }

// List returns a page of the artifacts of the caller's tenant, the newest first. A page
// may have fewer than its limit, although next is set.
func (s *Registry) List(ctx context.Context, who port.Identity, f artifact.Filter, page port.Page) ([]artifact.Artifact, string, error) {
	found, next, err := s.store.Resources(ctx, who.Tenant, artifactKind, f.Label(), page)
	if err != nil {
		return nil, "", fmt.Errorf("cannot list the artifacts: %w", err)
	}
	var selected []artifact.Artifact
	for _, r := range found {
		a, err := artifactIn(r)
		if err != nil {
			return nil, "", err
		}
		if f.Selects(a.Artifact) {
			selected = append(selected, a.Artifact)
		}
	}
	return selected, next, nil
}

// Expired returns a page of at most limit artifacts that may have expired, and the cursor of the
// next page.
func (s *Registry) Expired(ctx context.Context, after string, limit int) ([]port.ResourceRef, string, error) {
	return s.store.ResourcesDue(ctx, artifactKind, s.now(), after, limit)
}

// Collect removes an expired artifact that is no parent. It returns port.ErrConflict if the
// artifact was renewed meanwhile.
func (s *Registry) Collect(ctx context.Context, tenant, id string) error {
	a, err := s.load(ctx, tenant, id)
	if errors.Is(err, port.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the artifact: %w", err)
	}
	after, changed := a.Collect(s.now(), s.retention)
	if changed {
		a.Artifact = after
		if err := s.store.WriteResources(ctx, []port.Resource{a.resource()}, nil); err != nil {
			return fmt.Errorf("cannot store the artifact: %w", err)
		}
		a.version++
	}
	if a.State != artifact.Removing {
		return nil
	}
	return s.remove(ctx, a)
}

// Remove removes an artifact before its retention has ended, unless it is a parent. It does nothing if
// the artifact does not exist.
func (s *Registry) Remove(ctx context.Context, tenant, id string) error {
	for range port.CommitTries {
		a, err := s.load(ctx, tenant, id)
		switch {
		case errors.Is(err, port.ErrNotFound), err == nil && a.State == artifact.Stored && a.Children > 0:
			return nil
		case err != nil:
			return fmt.Errorf("cannot read the artifact: %w", err)
		case a.State == artifact.Stored:
			a.ExpiresAt = s.now()
			err = s.store.WriteResources(ctx, []port.Resource{a.resource()}, nil)
		}
		if err == nil {
			err = s.Collect(ctx, tenant, id)
		}
		if !errors.Is(err, port.ErrConflict) {
			return err
		}
	}
	return fault.New(fault.Unavailable, "too many concurrent changes of the artifact; retry")
}

// remove deletes the content of an artifact that is being removed, and then its record.
func (s *Registry) remove(ctx context.Context, a storedArtifact) error {
	if err := s.outputs.Delete(ctx, port.Accepted, a.Key); err != nil {
		return fmt.Errorf("cannot delete the content of the artifact: %w", err)
	}
	var parents []storedArtifact
	if a.Counted {
		parent, err := s.load(ctx, a.Tenant, a.Parent)
		if err != nil {
			return fmt.Errorf("cannot read the parent of the artifact: %w", err)
		}
		parent.Children--
		parents = append(parents, parent)
	}
	if err := s.store.WriteResources(ctx, resources(parents), []port.Resource{a.resource()}); err != nil {
		return fmt.Errorf("cannot remove the artifact: %w", err)
	}
	return nil
}
