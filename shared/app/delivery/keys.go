package delivery

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// EndorsedKeys manages the keys that sign the events of a deployment. The private part of the
// current key is a secret. Before a key signs an event, its public part is published with a
// signature by the current key of tokens. That signature is made once: other processes find the
// published key in the store.
type EndorsedKeys struct {
	seed   Seed
	store  port.EventKeyStore
	signer port.Signer
	clock  clock.Clock

	mu        sync.Mutex
	published string // the id of the key that this process knows to be published
}

// Seed returns the private part of the current key of events: 32 bytes.
type Seed func(ctx context.Context) ([]byte, error)

// NewEndorsedKeys returns the keys of events. seed reads the private part of the current key.
// signer signs its public part once, and store keeps it. Both are nil in a process that signs no
// events.
func NewEndorsedKeys(seed Seed, store port.EventKeyStore, signer port.Signer, c clock.Clock) *EndorsedKeys {
	return &EndorsedKeys{seed: seed, store: store, signer: signer, clock: c}
}

var _ port.EventKeys = (*EndorsedKeys)(nil)

// Signing implements port.EventKeys.
func (k *EndorsedKeys) Signing(ctx context.Context) (events.Key, error) {
	seed, err := k.seed(ctx)
	if err != nil {
		return events.Key{}, fmt.Errorf("cannot read the key of events: %w", err)
	}
	key, err := events.NewKey(seed)
	if err != nil {
		return events.Key{}, fmt.Errorf("unusable key of events: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.published == key.ID() {
		return key, nil
	}
	if err := k.publish(ctx, key); err != nil {
		return events.Key{}, fmt.Errorf("cannot publish the key of events: %w", err)
	}
	k.published = key.ID()
	return key, nil
}

// publish stores the endorsed public key, unless it is stored already. Each new process calls
// publish, and a signature by the key of tokens costs more than the events that the process
// signs.
func (k *EndorsedKeys) publish(ctx context.Context, key events.Key) error {
	stored, err := k.store.StoredEventKeys(ctx)
	if err != nil {
		return err
	}
	for _, document := range stored {
		var is struct {
			ID string `json:"kid"`
		}
		if err := json.Unmarshal(document, &is); err == nil && is.ID == key.ID() {
			return nil
		}
	}
	document, err := k.endorsed(ctx, key)
	if err != nil {
		return err
	}
	return k.store.AddEventKey(ctx, key.ID(), k.clock.Now(), document)
}

// endorsed returns the public key as a JWK with a signature of its thumbprint input (RFC 7638).
func (k *EndorsedKeys) endorsed(ctx context.Context, key events.Key) (json.RawMessage, error) {
	document, err := key.JWK()
	if err != nil {
		return nil, err
	}
	members := map[string]any{}
	if err := json.Unmarshal(document, &members); err != nil {
		return nil, err
	}
	input, err := json.Marshal(map[string]any{"crv": members["crv"], "kty": members["kty"], "x": members["x"]})
	if err != nil {
		return nil, err
	}
	by, err := k.signer.Current(ctx)
	if err != nil {
		return nil, err
	}
	signature, err := k.signer.Sign(ctx, by, input)
	if err != nil {
		return nil, err
	}
	members["endorsement"] = map[string]string{"kid": by, "alg": "ES256", "signature": base64.RawURLEncoding.EncodeToString(signature)}
	return json.Marshal(members)
}

// Published implements port.EventKeys.
func (k *EndorsedKeys) Published(ctx context.Context) ([]json.RawMessage, error) {
	return k.store.StoredEventKeys(ctx)
}
