package port

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sortie-dev/sortie/shared/run"
)

// Note is an event that no commit of a run has, such as that of a changed job. A store
// writes it in the transaction of the change, and the relay publishes it once for each
// ID, however often it is written.
type Note struct {
	Tenant string `json:"tenant"`
	// ID is the ULID of the event.
	ID string `json:"id"`
	// At is the time of the event: the same each time the note is written.
	At time.Time `json:"at"`
	// Document is the envelope without its notifier, JSON of at most 64 KiB.
	Document json.RawMessage `json:"document"`
}

// NoteStore stores notes of changes that are made outside of the store.
type NoteStore interface {
	// AddNotes stores notes, all or none. The errors are those of Store.
	AddNotes(ctx context.Context, notes ...Note) error
}

// Change is what a store has for the relay: a run after a commit with the events of the
// commit, or notes. Its JSON is a record of a StoredChange in a store without a stream.
type Change struct {
	Run    run.Run     `json:"run,omitzero"`
	Events []run.Event `json:"events,omitempty"`
	Notes  []Note      `json:"notes,omitempty"`
	// Encoded are the published events of the commit, if the store encodes them with it; see
	// EncodeEvents. Run has only its tenant then, and the other fields are empty.
	Encoded []FeedRecord `json:"-"`
}

// EncodeEvents returns the published events of a change of one tenant as bare records of its
// stream. A change that it returns an error for is stored as it is; the relay reports it.
type EncodeEvents func(c Change) ([]FeedRecord, error)
