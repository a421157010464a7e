package port

import (
	"context"
	"time"
)

// Outbox keeps changes of the store whose events could not be published, until they
// are: the store's stream keeps a change for a day only.
//
// It is safe for concurrent use. What SetAside stored is durable.
type Outbox interface {
	// SetAside stores a change. Storing one with a known id again replaces it.
	SetAside(ctx context.Context, c StoredChange) error
	// Stored returns a page of at most limit changes, the oldest first, except the
	// newest ones, which it may miss for a moment. after is the next of the previous
	// page; empty means the first page. next is empty at the end.
	Stored(ctx context.Context, after string, limit int) (changes []StoredChange, next string, err error)
	// Published removes a change. It returns nil for an unknown one.
	Published(ctx context.Context, id string) error
}

// StoredChange is a change as the store's stream delivered it.
type StoredChange struct {
	// ID identifies the change, at most 200 characters.
	ID string
	// At is when it was set aside, in whole seconds.
	At time.Time
	// Record is the record of the stream: JSON of at most 300 KB.
	Record []byte
}
