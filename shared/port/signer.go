package port

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// Signer holds the keys that sign tokens: ECDSA on P-256 with SHA-256 (ES256). It never returns
// private keys. It is safe for concurrent use. A failure is an Unavailable fault, which the
// caller retries.
type Signer interface {
	// Current returns the id of the current signing key.
	Current(ctx context.Context) (keyID string, err error)
	// Sign returns the signature of the message: 64 bytes, R and S. It returns
	// ErrNotFound for a key that has been removed.
	Sign(ctx context.Context, keyID string, message []byte) ([]byte, error)
	// Keys returns the keys whose signatures are valid, the current one first.
	Keys(ctx context.Context) ([]VerificationKey, error)
}

// KeyID returns the id of a public key on P-256: its RFC 7638 thumbprint, the SHA-256 of the
// ordered members of its JWK. The id does not reveal where the key is stored.
func KeyID(public *ecdsa.PublicKey) (string, error) {
	point, err := public.Bytes() // 4, X, Y
	if err != nil {
		return "", fmt.Errorf("cannot compute the key id: %w", err)
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
