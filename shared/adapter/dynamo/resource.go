package dynamo

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/format"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// The items of a resource: its record, and one for each label. The partition key has the
// kind and the id.
const (
	sortResource = "resource"
	sortLabel    = "label#"
	// resourceShards is the number of partition keys of the resources of a kind in the due
	// index. Each write of a resource takes a unit there.
	resourceShards = 4
)

func resourcePK(ref port.ResourceRef) string {
	return within(ref.Tenant, "resource", ref.Kind+"/"+ref.ID)
}

// resourcesKey is the partition key of the resources with a label in the list index.
func resourcesKey(tenant, kind, label string) string {
	return within(tenant, "resources", kind+"/"+label)
}

// resourceBorn returns the sort key of a resource in the list index, newest first.
func resourceBorn(r port.Resource) []byte {
	sum := sha256.Sum256([]byte(r.ID))
	return append(binary.BigEndian.AppendUint64(nil, ^nanos(r.CreatedAt)), sum[:8]...)
}

// resourceDoc is the document of a resource.
type resourceDoc struct {
	Version   int64           `json:"version"`
	Labels    []string        `json:"labels,omitempty"`
	CreatedAt time.Time       `json:"createdAt"`
	DueAt     time.Time       `json:"dueAt,omitzero"`
	Document  json.RawMessage `json:"document"`
}

// WriteResources implements port.ResourceStore.
func (s *Store) WriteResources(ctx context.Context, save, remove []port.Resource, notes ...port.Note) error {
	var parts []*part
	for _, r := range save {
		saved, err := s.resourceParts(r)
		if err != nil {
			return fmt.Errorf("cannot encode %s %s: %w", r.Kind, r.ID, err)
		}
		parts = append(parts, saved...)
	}
	for _, r := range remove {
		gone := &part{key: keyOf(resourcePK(r.ResourceRef), sortResource), remove: true, refused: func(context.Context, item) error { return port.ErrConflict }}
		gone.where(attrVersion, "=", number(r.Version))
		parts = append(parts, gone)
		for _, label := range r.Labels {
			parts = append(parts, &part{key: keyOf(resourcePK(r.ResourceRef), sortLabel+label), remove: true})
		}
	}
	noted, err := s.noteParts(notes)
	if err == nil && len(parts)+len(noted) > 0 {
		err = s.retryOutdated(ctx, func() error { return s.write(ctx, slices.Concat(parts, noted)) })
	}
	return wrap(err, "store", "resources")
}

func (s *Store) resourceParts(r port.Resource) ([]*part, error) {
	pk := resourcePK(r.ResourceRef)
	put := keyOf(pk, sortResource)
	if !r.DueAt.IsZero() {
		put[attrDue] = text(dueKey("resource/"+r.Kind, shardOf(pk, resourceShards)))
		put[attrAt] = number(wholeSecond(r.DueAt))
	}
	is, err := s.versioned(put, r.Version, map[string]any{attrDoc: resourceDoc{r.Version + 1, r.Labels, r.CreatedAt, r.DueAt, r.Document}})
	if err != nil {
		return nil, err
	}
	parts := []*part{is}
	for _, label := range r.Labels {
		entry := keyOf(pk, sortLabel+label)
		entry[attrList], entry[attrBorn] = text(resourcesKey(r.Tenant, r.Kind, label)), bytes(resourceBorn(r))
		parts = append(parts, &part{put: entry})
	}
	return parts, nil
}

func resourceOf(is item) (r port.Resource, err error) {
	tenant, name := named(textOf(is[schema.Partition.Name]))
	kind, id, _ := strings.Cut(name, "/")
	var doc resourceDoc
	if err := format.Unpack(documentOf(is[attrDoc]), &doc); err != nil {
		return r, fmt.Errorf("%s %s of %s: %w", kind, id, tenant, fault.Wrap(err, fault.Internal, "unreadable stored resource"))
	}
	return port.Resource{
		ResourceRef: port.ResourceRef{Tenant: tenant, Kind: kind, ID: id}, Version: doc.Version, Labels: doc.Labels,
		CreatedAt: doc.CreatedAt, DueAt: doc.DueAt, Document: doc.Document,
	}, nil
}

// LoadResource implements port.ResourceStore.
func (s *Store) LoadResource(ctx context.Context, ref port.ResourceRef) (r port.Resource, err error) {
	is, err := s.get(ctx, keyOf(resourcePK(ref), sortResource), true)
	if err == nil && is == nil {
		err = port.ErrNotFound
	}
	if err == nil {
		r, err = resourceOf(is)
	}
	return r, wrap(err, "read "+ref.Kind, ref.ID)
}

// Resources implements port.ResourceStore. It returns the same faults as List. It may miss the
// newest commits.
func (s *Store) Resources(ctx context.Context, tenant, kind, label string, page port.Page) ([]port.Resource, string, error) {
	in := listing{kind: "resources 1", scope: tenant + "/" + kind + "/" + label}
	found, next, err := documentPage(ctx, s, in, resourcesKey(tenant, kind, label), sortResource, page, resourceOf)
	return found, next, wrap(err, "list the resources of", tenant)
}

// ResourcesDue implements port.ResourceStore. It reads only the index, whose times are whole
// seconds.
func (s *Store) ResourcesDue(ctx context.Context, kind string, now time.Time, after string, limit int) ([]port.ResourceRef, string, error) {
	entries, next, err := s.dueEntries(ctx, now, after, limit, sortResource, resourceShards, "resource/"+kind)
	if err != nil {
		return nil, "", wrap(err, "read", "the resources that are due")
	}
	due := make([]port.ResourceRef, len(entries))
	for i, e := range entries {
		tenant, name := named(textOf(e[schema.Partition.Name]))
		_, id, _ := strings.Cut(name, "/")
		due[i] = port.ResourceRef{Tenant: tenant, Kind: kind, ID: id}
	}
	return due, next, nil
}
