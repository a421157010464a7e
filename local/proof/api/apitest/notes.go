package apitest

import (
	"testing"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/port"
)

// Notes returns the events of the notes in the outbox of the stage's store.
func (s *Stage) Notes(t *testing.T) (all []events.Envelope) {
	t.Helper()
	outbox, ok := s.Store.(port.Outbox)
	if !ok {
		t.Fatalf("got a store %T without an outbox", s.Store)
	}
	for after := ""; ; {
		changes, next, err := outbox.Stored(t.Context(), after, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			change, err := sqlite.ChangeOf(c.Record)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range change.Notes {
				e, err := events.Parse(n.Document)
				if err != nil || e.EventID != events.ID(n.ID) || e.TenantID != n.Tenant || !e.OccurredAt.Equal(n.At) {
					t.Fatalf("got note %+v with event %+v (%v)", n, e, err)
				}
				all = append(all, e)
			}
		}
		if after = next; after == "" {
			return all
		}
	}
}
