package port

import (
	"context"
	"time"
)

// Outbox keeps changes of the store until their events are published: all of them if
// the store has no stream, otherwise those that could not be published, because the
// stream keeps a change for a day only.
//
// It is safe for concurrent use. What SetAside stored is durable.
type Outbox interface {
	// SetAside stores a change. Storing one with a known id again replaces it.
	SetAside(ctx context.Context, c StoredChange) error
	// Stored returns a page of at most limit changes, the oldest first, except the
	// newest ones, which it may miss for a moment. after is the next of the previous
	// page; empty means the first page. next is empty at the end.
	Stored(ctx context.Context, after string, limit int) (changes []StoredChange, next string, err error)
	// Published removes changes. It ignores unknown ones.
	Published(ctx context.Context, ids ...string) error
}

// CommitOutbox is the Outbox of a store without a stream. Each commit of a run with
// events, and the notes of each write, are a change of it, in the order of the commits.
// Stored misses none.
type CommitOutbox interface {
	Outbox
	// Wait returns nil when there is a change behind the one with the id after, at once
	// if there is, and the error of ctx when that ends. The change after may be
	// published. An empty id means any change.
	Wait(ctx context.Context, after string) error
	// Join returns a context for one Append to a Feed. If the feed is stored with the outbox,
	// the commit of the append also removes the changes: both are made, or none. The append
	// fails with ErrConflict if one of the changes is not stored. joined reports, after the
	// append, whether its commit has removed them.
	Join(ctx context.Context, ids ...string) (joint context.Context, joined func() bool)
}

// StoredChange is a change as the store's stream delivered it, or the JSON of a Change.
type StoredChange struct {
	// ID identifies the change, at most 200 characters.
	ID string
	// At is when it was stored, in whole seconds.
	At time.Time
	// Record is the record of the stream, at most 300 KB of JSON, or what the outbox of a
	// CommitOutbox has in its place.
	Record []byte
}
