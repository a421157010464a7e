package port

import (
	"context"
	"time"
)

// Outbox stores changes until their events are published: all changes if the store has no
// stream, otherwise those that could not be published. A stream keeps a change only for a day.
//
// It is safe for concurrent use. A change is durable once SetAside has returned nil.
type Outbox interface {
	// SetAside stores a change. It replaces a stored change with the same id.
	SetAside(ctx context.Context, c StoredChange) error
	// Stored returns a page of at most limit changes, the oldest first. It may miss the newest
	// changes for a moment. after is the next of the previous page; empty means the first page.
	// next is empty at the end.
	Stored(ctx context.Context, after string, limit int) (changes []StoredChange, next string, err error)
	// Published removes changes. It ignores unknown ids.
	Published(ctx context.Context, ids ...string) error
}

// CommitOutbox is the Outbox of a store without a stream. Each commit of a run with events, and
// the notes of each write, are stored as a change, in the order of the commits. Stored does not
// miss any change.
type CommitOutbox interface {
	Outbox
	// Wait returns nil once there is a change after the one with the id after, and the error of
	// ctx when ctx ends. The change after may already be published. An empty id means any
	// change.
	Wait(ctx context.Context, after string) error
	// Join returns a context for one Append to a Feed. If the feed is in the same database as
	// the outbox, the commit of the append also removes the changes: both happen, or neither.
	// The append fails with ErrConflict if one of the changes is not stored. joined reports,
	// after the append, whether its commit has removed them.
	Join(ctx context.Context, ids ...string) (joint context.Context, joined func() bool)
}

// StoredChange is a change as the store's stream delivered it, or as the JSON of a Change.
type StoredChange struct {
	// ID identifies the change. It has at most 200 characters.
	ID string
	// At is when the change was stored, in whole seconds.
	At time.Time
	// Record is the record of the stream, at most 300 KB of JSON, or the content of a
	// CommitOutbox.
	Record []byte
}
