package keyfile

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// ofEvents are the keys that sign events.
var ofEvents = kind[ed25519.PrivateKey]{
	"Ed25519",
	func() (ed25519.PrivateKey, error) {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return private, err
	},
	func(private ed25519.PrivateKey) (string, error) {
		key, err := events.NewKey(private.Seed())
		return key.ID(), err
	},
}

// EventKeys has the keys in a file that sign events. It reads the file again when it changes.
// It is safe for concurrent use.
type EventKeys struct{ file[ed25519.PrivateKey] }

var _ port.EventKeys = (*EventKeys)(nil)

// OpenEvents reads the keys of events, or creates the file with a new key. The folder of the
// file must exist. The error describes an invalid file.
func OpenEvents(path string) (*EventKeys, error) {
	k := &EventKeys{file[ed25519.PrivateKey]{path: path, kind: ofEvents}}
	return k, k.open()
}

// Signing implements port.EventKeys.
func (k *EventKeys) Signing(context.Context) (events.Key, error) {
	keys, err := k.now()
	if err != nil {
		return events.Key{}, err
	}
	return events.NewKey(keys[0].private.Seed())
}

// Published implements port.EventKeys.
func (k *EventKeys) Published(context.Context) (all []json.RawMessage, err error) {
	keys, err := k.now()
	if err != nil {
		return nil, err
	}
	for _, each := range keys {
		key, err := events.NewKey(each.private.Seed())
		if err != nil {
			return nil, fault.Wrap(err, fault.Internal, "unusable key of events")
		}
		document, err := key.JWK()
		if err != nil {
			return nil, fmt.Errorf("cannot encode a key of events: %w", err)
		}
		all = append(all, document)
	}
	return all, nil
}

// RotateEvents adds a new first key to an existing file with keys of events. The other keys
// stay published, because exported events may be verified at any time.
func RotateEvents(path string, now time.Time) (Rotation, error) {
	return rotate(path, ofEvents, now, math.MaxInt64)
}
