package events

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/note"
)

// Key is an Ed25519 key that verifies events and checkpoints and, with its private part,
// signs them.
type Key struct {
	public  ed25519.PublicKey
	private ed25519.PrivateKey // nil for a public key
}

// errNoPrivate is returned for a signature by a public key.
var errNoPrivate = errors.New("the key has no private part")

// NewKey returns the key with a seed of 32 bytes.
func NewKey(seed []byte) (Key, error) {
	if len(seed) != ed25519.SeedSize {
		return Key{}, fmt.Errorf("got a seed of %d bytes, want %d", len(seed), ed25519.SeedSize)
	}
	private := ed25519.NewKeyFromSeed(seed)
	public, _ := private.Public().(ed25519.PublicKey)
	return Key{public, private}, nil
}

// ID returns the id of the key: "event-" and 16 hexadecimal digits, which depend only on the
// public part.
func (k Key) ID() string {
	sum := sha256.Sum256(k.public)
	return "event-" + hex.EncodeToString(sum[:8])
}

// KeyID, Public, Sign and Verify implement the signer and verifier interfaces of package dsse.
func (k Key) KeyID() (string, error) { return k.ID(), nil }

// Public returns the public part.
func (k Key) Public() crypto.PublicKey { return k.public }

// Sign signs data.
func (k Key) Sign(_ context.Context, data []byte) ([]byte, error) {
	if k.private == nil {
		return nil, errNoPrivate
	}
	return ed25519.Sign(k.private, data), nil
}

// Verify checks a signature of data.
func (k Key) Verify(_ context.Context, data, signature []byte) error {
	if !ed25519.Verify(k.public, data, signature) {
		return errors.New("the signature does not match")
	}
	return nil
}

// noteKey is a Key as the signer and verifier of a note.
type noteKey struct{ Key }

func (k noteKey) Name() string { return k.ID() }

// KeyHash implements note.Signer with the hash of C2SP signed-note for Ed25519.
func (k noteKey) KeyHash() uint32 {
	sum := sha256.Sum256(slices.Concat([]byte(k.Name()+"\n\x01"), k.public))
	return binary.BigEndian.Uint32(sum[:])
}

func (k noteKey) Sign(message []byte) ([]byte, error) {
	return k.Key.Sign(context.Background(), message)
}

func (k noteKey) Verify(message, signature []byte) bool {
	return k.Key.Verify(context.Background(), message, signature) == nil
}

// Keys are the keys that a reader accepts, by id.
type Keys map[string]Key

// Verifier implements note.Verifiers.
func (k Keys) Verifier(name string, hash uint32) (note.Verifier, error) {
	if key, ok := k[name]; ok && (noteKey{key}).KeyHash() == hash {
		return noteKey{key}, nil
	}
	return nil, &note.UnknownVerifierError{Name: name, KeyHash: hash}
}

// jwk is a public key as a JSON Web Key (RFC 8037).
type jwk struct {
	Type  string `json:"kty"`
	Curve string `json:"crv"`
	X     string `json:"x"`
	ID    string `json:"kid,omitempty"`
	Use   string `json:"use,omitempty"`
	Alg   string `json:"alg,omitempty"`
}

// ParseKeys reads the Ed25519 keys of a JSON Web Key set, and ignores other keys. It returns an
// error if an id does not belong to its key, or if the set has no such key.
func ParseKeys(document []byte) (Keys, error) {
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := json.Unmarshal(document, &set); err != nil {
		return nil, fmt.Errorf("malformed key set, want a JSON Web Key set: %w", err)
	}
	found := Keys{}
	for _, each := range set.Keys {
		if each.Type != "OKP" || each.Curve != "Ed25519" {
			continue
		}
		public, err := base64.RawURLEncoding.DecodeString(each.X)
		if err != nil || len(public) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("malformed key %q: x is not the base64url of %d bytes", each.ID, ed25519.PublicKeySize)
		}
		key := Key{public: public}
		if each.ID != "" && each.ID != key.ID() {
			return nil, fmt.Errorf("key %q has the id of another key, want %s", each.ID, key.ID())
		}
		found[key.ID()] = key
	}
	if len(found) == 0 {
		return nil, errors.New("the key set has no key of events, want one with kty OKP and crv Ed25519")
	}
	return found, nil
}

// jwk returns the public part.
func (k Key) jwk() jwk {
	return jwk{"OKP", "Ed25519", base64.RawURLEncoding.EncodeToString(k.public), k.ID(), "sig", "EdDSA"}
}

// JWK returns the public part as a JSON Web Key.
func (k Key) JWK() (json.RawMessage, error) { return json.Marshal(k.jwk()) }

// MarshalJSON returns the public parts as a JSON Web Key set, in the order of their ids.
func (k Keys) MarshalJSON() ([]byte, error) {
	set := make([]jwk, 0, len(k))
	for _, key := range k {
		set = append(set, key.jwk())
	}
	slices.SortFunc(set, func(a, b jwk) int { return cmp.Compare(a.ID, b.ID) })
	return json.Marshal(map[string][]jwk{"keys": set})
}

// Equal reports whether two keys have the same public part.
func (k Key) Equal(other Key) bool { return k.public.Equal(other.public) }
