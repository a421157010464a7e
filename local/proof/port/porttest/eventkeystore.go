package porttest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
)

// EventKeyStore is the conformance suite of port.EventKeyStore.
func EventKeyStore(t *testing.T, open func(t *testing.T) port.EventKeyStore) {
	t.Helper()
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	t.Run("newest key is first", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		for n := range 3 {
			for again := range 2 { // a repeated call changes nothing
				key := json.RawMessage(fmt.Sprintf(`{"kid":"event-%d","again":%d}`, n, again))
				if err := s.AddEventKey(t.Context(), fmt.Sprint("event-", n), at.Add(time.Duration(n)*time.Second), key); err != nil {
					t.Fatal(err)
				}
			}
		}
		all, err := s.StoredEventKeys(t.Context())
		if err != nil || len(all) != 3 {
			t.Fatalf("got %d keys (%v), want 3", len(all), err)
		}
		for i, key := range all {
			if want := fmt.Sprintf(`{"kid":"event-%d","again":0}`, 2-i); string(key) != want {
				t.Errorf("got key %s, want %s", key, want)
			}
		}
	})
	t.Run("no keys", func(t *testing.T) {
		t.Parallel()
		if all, err := open(t).StoredEventKeys(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("got %d keys (%v), want none", len(all), err)
		}
	})
}
