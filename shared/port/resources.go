package port

import (
	"context"
	"encoding/json"
	"time"
)

// ResourceStore stores resources of the control plane, such as the records of artifacts. A
// resource is a versioned document of a kind, with labels that list it and a time at which it
// is due.
//
// LoadResource is strongly consistent. Resources and ResourcesDue may be eventually consistent:
// they can miss recent commits, and ResourcesDue can return a resource that is deleted or no
// longer due. ResourceStore is safe for concurrent use. The errors of a write are those of
// Store.
type ResourceStore interface {
	// WriteResources saves and removes resources and adds notes: all or nothing. It increments
	// the version of a saved resource. The version of each resource must be the stored one, 0
	// to create it; otherwise the error is ErrConflict. A save can add labels to the stored
	// ones, but removes none. A removed resource must have all of its stored labels. A write
	// contains a resource at most once, and has at most MaxResources items: resources, labels
	// and notes.
	WriteResources(ctx context.Context, save, remove []Resource, notes ...Note) error
	// LoadResource returns a resource, or ErrNotFound.
	LoadResource(ctx context.Context, ref ResourceRef) (Resource, error)
	// Resources returns a page of a tenant's resources of a kind with a label, the newest
	// first. It uses only the page's Cursor and Limit.
	Resources(ctx context.Context, tenant, kind, label string, page Page) (found []Resource, next string, err error)
	// ResourcesDue returns a page of at most limit resources of a kind with a DueAt by now, the
	// longest overdue first. It may return a resource up to a second late. Paging works as in
	// Store.Due.
	ResourcesDue(ctx context.Context, kind string, now time.Time, after string, limit int) (due []ResourceRef, next string, err error)
}

// MaxResources is the maximum number of items in one write (DynamoDB: 100 in a transaction).
const MaxResources = 90

// ResourceRef identifies a resource. A kind contains neither "#" nor "/".
type ResourceRef struct{ Tenant, Kind, ID string }

// Resource is a stored resource.
type Resource struct {
	ResourceRef
	// Version counts the writes, from 1; 0 means not stored.
	Version int64
	// Labels name the lists that contain the resource.
	Labels []string
	// CreatedAt orders the lists. It never changes.
	CreatedAt time.Time
	// DueAt is when ResourcesDue returns the resource; zero means never.
	DueAt time.Time
	// Document is the content of the resource, a JSON object.
	Document json.RawMessage
}
