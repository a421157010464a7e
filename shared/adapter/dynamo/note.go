package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/port"
)

// notePrefix is followed by the tenant and the id of a note.
const notePrefix = "#note#"

// noteTTL is longer than the table's stream keeps a record.
const noteTTL = 48 * time.Hour

// AddNotes implements port.Store. One call has room for about sixty notes of the largest size.
func (s *Store) AddNotes(ctx context.Context, notes ...port.Note) error {
	parts, err := s.noteParts(notes)
	if err == nil && len(parts) > 0 {
		err = s.write(ctx, parts)
	}
	return wrap(err, "store", "notes")
}

// noteParts returns the parts that store the notes, for the write to which they belong. The
// table's stream delivers each as a new event.
func (s *Store) noteParts(notes []port.Note) ([]*part, error) {
	parts := make([]*part, len(notes))
	for i, n := range notes {
		doc, err := s.pack(n)
		if err != nil {
			return nil, fmt.Errorf("cannot encode note %s: %w", n.ID, err)
		}
		put := keyOf(notePrefix+within(n.Tenant, "note", n.ID), sortNote)
		put[attrDoc], put[attrFresh] = document(doc), number(1)
		put[schema.TTL] = number(s.now().Add(noteTTL).Unix())
		parts[i] = &part{put: put}
	}
	return parts, nil
}
