package orchestrator

import (
	"context"
	"crypto/ecdsa"
)

// Signer holds the keys that sign tokens: ECDSA on P-256 with SHA-256 (ES256).
// Private keys never leave it. Calls may be made from anywhere at once; a
// failure is an Unavailable fault, which the caller repeats.
type Signer interface {
	// Current names the key that signs now.
	Current(ctx context.Context) (keyID string, err error)
	// Sign signs the message with the key: 64 bytes, R and S. ErrNotFound for
	// a key that is no more.
	Sign(ctx context.Context, keyID string, message []byte) ([]byte, error)
	// Keys lists the keys whose signatures are good, the current one first.
	Keys(ctx context.Context) ([]VerificationKey, error)
}

// VerificationKey is the public half of a key.
type VerificationKey struct {
	ID     string
	Public *ecdsa.PublicKey
}
