// Package keyfile keeps the keys that sign tokens in a file, for a Sortie that
// runs on one host.
//
// The file has one or more private keys for ECDSA on P-256, as PKCS #8 in PEM,
// the newest first: it signs, and the signatures of all are good. So a key is
// replaced by putting a new one before it, and the old one is taken out when its
// last token has expired. A key's id is its thumbprint (RFC 7638), which needs
// no name in the file.
//
// The package promises that a file is there whole or not at all, whoever makes
// it at the same time. It refuses a file that others than its owner can read,
// and never writes over one.
package keyfile

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"slices"

	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// Signer signs with the keys of a file. It reads the file once. It is safe for
// use by many goroutines.
type Signer struct{ keys []key }

var _ orchestrator.Signer = (*Signer)(nil)

type key struct {
	id      string
	private *ecdsa.PrivateKey
}

// Open reads the keys, and makes the file with a new one where there is none;
// its folder must exist. The error says what is wrong with a file that is there.
func Open(path string) (*Signer, error) {
	keys, err := readOrMake(path)
	if err != nil {
		return nil, err
	}
	return &Signer{keys}, nil
}

// Current names the first key.
func (s *Signer) Current(context.Context) (string, error) { return s.keys[0].id, nil }

// Sign signs the message.
func (s *Signer) Sign(_ context.Context, keyID string, message []byte) ([]byte, error) {
	at := slices.IndexFunc(s.keys, func(k key) bool { return k.id == keyID })
	if at < 0 {
		return nil, orchestrator.ErrNotFound
	}
	digest := sha256.Sum256(message)
	r, v, err := ecdsa.Sign(rand.Reader, s.keys[at].private, digest[:])
	if err != nil {
		return nil, err
	}
	const half = 32
	signature := make([]byte, 2*half)
	r.FillBytes(signature[:half])
	v.FillBytes(signature[half:])
	return signature, nil
}

// Keys lists the public halves.
func (s *Signer) Keys(context.Context) ([]orchestrator.VerificationKey, error) {
	public := make([]orchestrator.VerificationKey, len(s.keys))
	for i, k := range s.keys {
		public[i] = orchestrator.VerificationKey{ID: k.id, Public: &k.private.PublicKey}
	}
	return public, nil
}
