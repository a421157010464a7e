package port

import (
	"context"
	"encoding/json"
	"time"
)

// ResourceStore stores resources of the control plane, such as the records of artifacts:
// versioned documents of a kind, in lists, with a time at which they are due.
//
// LoadResource is strongly consistent. Resources and ResourcesDue may be eventually
// consistent: they can miss recent commits, and ResourcesDue can return what is deleted or
// no longer due. ResourceStore is safe for concurrent use. The errors of a write are those
// of Store.
type ResourceStore interface {
	// WriteResources saves and removes resources and adds notes: all or nothing. It raises
	// the version of a saved resource by one. The version of each must be the stored one, 0
	// creates; otherwise the error is ErrConflict. A save may add labels to those that are
	// stored, and takes none away. A removed resource has all of its labels. A resource
	// occurs once in a write, which has at most MaxResources items: resources, labels and notes.
	WriteResources(ctx context.Context, save, remove []Resource, notes ...Note) error
	// LoadResource returns a resource, or ErrNotFound.
	LoadResource(ctx context.Context, ref ResourceRef) (Resource, error)
	// Resources returns a page of a tenant's resources of a kind with a label, the newest
	// first. It uses the page's Cursor and Limit only.
	Resources(ctx context.Context, tenant, kind, label string, page Page) (found []Resource, next string, err error)
	// ResourcesDue returns a page of at most limit resources of a kind whose DueAt has come
	// by now, the longest overdue first. It may return a resource up to a second late. Its
	// pages are those of Store.Due.
	ResourcesDue(ctx context.Context, kind string, now time.Time, after string, limit int) (due []ResourceRef, next string, err error)
}

// MaxResources is the number of items in one write (DynamoDB: 100 in a transaction).
const MaxResources = 90

// ResourceRef identifies a resource. A kind has neither "#" nor "/".
type ResourceRef struct{ Tenant, Kind, ID string }

// Resource is a stored resource.
type Resource struct {
	ResourceRef
	// Version counts the writes; 0 is not stored.
	Version int64
	// Labels are the lists that have the resource.
	Labels []string
	// CreatedAt orders the lists. It never changes.
	CreatedAt time.Time
	// DueAt is when the resource needs a look; the zero time is never.
	DueAt time.Time
	// Document is its content, a JSON object.
	Document json.RawMessage
}
