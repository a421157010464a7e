package porttest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/port"
)

// EventKeysHarness has event keys that can be replaced.
type EventKeysHarness struct {
	Keys port.EventKeys
	// Rotate makes a new key the current one. Earlier keys stay published.
	Rotate func()
}

// EventKeys is the conformance suite of port.EventKeys.
func EventKeys(t *testing.T, open func(t *testing.T) EventKeysHarness) {
	t.Helper()
	t.Run("published keys verify signatures", func(t *testing.T) {
		t.Parallel()
		h := open(t)
		first := eventKey(t, h.Keys)
		signed, err := events.Sign(t.Context(), []byte(`{"schemaVersion":"orch.event.v1"}`), first)
		if err != nil {
			t.Fatalf("got %v, want a key that signs", err)
		}
		for range 2 {
			if _, _, err := publishedKeys(t, h.Keys).Open(t.Context(), signed); err != nil {
				t.Errorf("got %v, want a signature that verifies", err)
			}
			h.Rotate()
		}
	})
	t.Run("current key is published first", func(t *testing.T) {
		t.Parallel()
		h := open(t)
		before := eventKey(t, h.Keys)
		h.Rotate()
		after := eventKey(t, h.Keys)
		if after.ID() == before.ID() {
			t.Fatalf("got key %s before and after a rotation, want another one", after.ID())
		}
		all, err := h.Keys.Published(t.Context())
		var first struct {
			ID string `json:"kid"`
		}
		if err == nil {
			err = json.Unmarshal(all[0], &first)
		}
		if err != nil || len(all) != 2 || first.ID != after.ID() {
			t.Errorf("got %d keys (%v), the first %s; want 2, the first %s", len(all), err, first.ID, after.ID())
		}
	})
	t.Run("private part is not published", func(t *testing.T) {
		t.Parallel()
		for id, key := range publishedKeys(t, open(t).Keys) {
			if _, err := key.Sign(t.Context(), nil); err == nil {
				t.Errorf("got published key %s that signs", id)
			}
		}
	})
}

func eventKey(t *testing.T, keys port.EventKeys) events.Key {
	t.Helper()
	key, err := keys.Signing(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func publishedKeys(t *testing.T, keys port.EventKeys) events.Keys {
	t.Helper()
	all, err := keys.Published(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	document, err := json.Marshal(map[string]any{"keys": all})
	if err != nil {
		t.Fatal(err)
	}
	found, err := events.ParseKeys(document)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
