package fake

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
)

// WriteResources implements port.ResourceStore.
func (s *Store) WriteResources(ctx context.Context, save, remove []port.Resource, notes ...port.Note) error {
	seen, items := map[port.ResourceRef]bool{}, len(notes)
	for i, r := range append(append([]port.Resource{}, save...), remove...) {
		items += 1 + len(r.Labels)
		if r.Tenant == "" || r.Kind == "" || r.ID == "" || r.CreatedAt.IsZero() || seen[r.ResourceRef] || i >= len(save) && r.Version == 0 {
			s.witness.report(fmt.Errorf("misuse: write of the resource %+v, twice or without a tenant, a kind, an id, a time or a version", r.ResourceRef))
		}
		seen[r.ResourceRef] = true
	}
	if items > port.MaxResources {
		s.witness.report(fmt.Errorf("misuse: write of %d items of resources", items))
	}
	return s.call(context.Background(), "WriteResources", "", true, func() error { return s.inner.WriteResources(ctx, save, remove, notes...) })
}

// LoadResource implements port.ResourceStore.
func (s *Store) LoadResource(ctx context.Context, ref port.ResourceRef) (port.Resource, error) {
	return result(context.Background(), &s.calls, "LoadResource", "", false, func() (port.Resource, error) { return s.inner.LoadResource(ctx, ref) })
}

// Resources implements port.ResourceStore.
func (s *Store) Resources(ctx context.Context, tenant, kind, label string, page port.Page) (found []port.Resource, next string, err error) {
	found, err = result(context.Background(), &s.calls, "Resources", "", false, func() (found []port.Resource, err error) {
		found, next, err = s.inner.Resources(ctx, tenant, kind, label, page)
		return found, err
	})
	return found, next, err
}

// ResourcesDue implements port.ResourceStore.
func (s *Store) ResourcesDue(ctx context.Context, kind string, now time.Time, after string, limit int) (due []port.ResourceRef, next string, err error) {
	due, err = result(context.Background(), &s.calls, "ResourcesDue", "", false, func() (due []port.ResourceRef, err error) {
		due, next, err = s.inner.ResourcesDue(ctx, kind, now, after, limit)
		return due, err
	})
	return due, next, err
}
