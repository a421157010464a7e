package port

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
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

// KeyID names a key by its public half: the thumbprint of RFC 7638, SHA-256 over
// the members of its JWK in their order. So an id tells nothing of where the key
// is kept. The key is on P-256.
func KeyID(public *ecdsa.PublicKey) (string, error) {
	point, err := public.Bytes() // 4, X, Y
	if err != nil {
		return "", fmt.Errorf("cannot name the key: %w", err)
	}
	text := base64.RawURLEncoding
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"P-256","kty":"EC","x":"%s","y":"%s"}`,
		text.EncodeToString(point[1:33]), text.EncodeToString(point[33:])))
	return text.EncodeToString(sum[:]), nil
}

// VerificationKey is the public half of a key.
type VerificationKey struct {
	ID     string
	Public *ecdsa.PublicKey
}
