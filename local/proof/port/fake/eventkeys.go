package fake

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// EventKeys stores keys in memory. It is safe for concurrent use.
type EventKeys struct {
	calls
	mu   sync.Mutex
	keys []events.Key // the current one first
}

var _ port.EventKeys = (*EventKeys)(nil)

// NewEventKeys returns EventKeys with one key, which is the same in every call.
func NewEventKeys(plan Plan) *EventKeys {
	k := &EventKeys{calls: calls{plan: plan}}
	k.Rotate()
	return k
}

// Rotate makes another key the current one.
func (k *EventKeys) Rotate() {
	k.mu.Lock()
	defer k.mu.Unlock()
	seed := make([]byte, 32)
	seed[0] = byte(len(k.keys) + 1)
	key, _ := events.NewKey(seed) //nolint:errcheck // the seed has the right size
	k.keys = append([]events.Key{key}, k.keys...)
}

// Signing implements port.EventKeys.
func (k *EventKeys) Signing(ctx context.Context) (events.Key, error) {
	return result(ctx, &k.calls, "Signing", "", false, func() (events.Key, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.keys[0], nil
	})
}

// Published implements port.EventKeys.
func (k *EventKeys) Published(ctx context.Context) ([]json.RawMessage, error) {
	return result(ctx, &k.calls, "Published", "", false, func() (all []json.RawMessage, err error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, key := range k.keys {
			document, err := key.JWK()
			if err != nil {
				return nil, fault.Wrap(err, fault.Internal, "cannot encode a key")
			}
			all = append(all, document)
		}
		return all, nil
	})
}

// EventKeyStore stores public keys in memory. It is safe for concurrent use.
type EventKeyStore struct {
	calls
	mu   sync.Mutex
	ids  map[string]bool
	keys []json.RawMessage // the newest first
}

var _ port.EventKeyStore = (*EventKeyStore)(nil)

// NewEventKeyStore returns an EventKeyStore without keys.
func NewEventKeyStore(plan Plan) *EventKeyStore {
	return &EventKeyStore{calls: calls{plan: plan}, ids: map[string]bool{}}
}

// AddEventKey implements port.EventKeyStore.
func (s *EventKeyStore) AddEventKey(ctx context.Context, id string, _ time.Time, key json.RawMessage) error {
	return s.call(ctx, "AddEventKey", id, true, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.ids[id] {
			s.ids[id], s.keys = true, append([]json.RawMessage{key}, s.keys...)
		}
		return nil
	})
}

// StoredEventKeys implements port.EventKeyStore.
func (s *EventKeyStore) StoredEventKeys(ctx context.Context) ([]json.RawMessage, error) {
	return result(ctx, &s.calls, "StoredEventKeys", "", false, func() ([]json.RawMessage, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Clone(s.keys), nil
	})
}
