package port

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sortie-dev/sortie/events"
)

// EventKeys provides the keys that sign events and checkpoints. It is safe for concurrent use.
// A failure is an Unavailable fault, which the caller retries.
type EventKeys interface {
	// Signing returns the current signing key, with its private part.
	Signing(ctx context.Context) (events.Key, error)
	// Published returns the public keys whose signatures are valid, the current one first: JSON
	// Web Keys with kty OKP and crv Ed25519. They may have further members.
	Published(ctx context.Context) ([]json.RawMessage, error)
}

// EventKeyStore stores the public keys of events. It is safe for concurrent use. Its reads are
// strongly consistent.
type EventKeyStore interface {
	// AddEventKey stores a public key with its id. It does nothing if the id is already stored.
	AddEventKey(ctx context.Context, id string, at time.Time, key json.RawMessage) error
	// StoredEventKeys returns all keys, the newest first.
	StoredEventKeys(ctx context.Context) ([]json.RawMessage, error)
}
