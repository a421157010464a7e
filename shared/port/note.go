package port

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Note is an event that does not belong to a commit of a run, such as a changed job. A store
// writes it in the transaction of the change. The relay publishes it once for each ID, even if
// it is written several times.
type Note struct {
	Tenant string `json:"tenant"`
	// ID is the ULID of the event.
	ID string `json:"id"`
	// At is the time of the event. It is the same each time the note is written.
	At time.Time `json:"at"`
	// Document is the envelope without its notifier: at most 64 KiB of JSON.
	Document json.RawMessage `json:"document"`
}

// NoteStore stores notes of changes that are made outside of the store.
type NoteStore interface {
	// AddNotes stores all notes or none. The errors are those of Store.
	AddNotes(ctx context.Context, notes ...Note) error
}

// Change is a change of the store for the relay: a run after a commit with the events of the
// commit, or notes. Its JSON is the Record of a StoredChange in a store without a stream.
type Change struct {
	Run    run.Run     `json:"run,omitzero"`
	Events []run.Event `json:"events,omitempty"`
	Notes  []Note      `json:"notes,omitempty"`
	// Encoded are the events of the commit as feed records, if the store encodes them in the
	// commit; see EncodeEvents. Then Run has only its tenant, and the other fields are empty.
	Encoded []FeedRecord `json:"-"`
}

// EncodeEvents returns the events of a change of one tenant as records of its stream, without a
// DSSE envelope. If it returns an error, the change is stored unencoded, and the relay reports
// the error.
type EncodeEvents func(c Change) ([]FeedRecord, error)
