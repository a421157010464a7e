package simulation

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/hex"

	"github.com/sortie-dev/sortie/shared/port"
)

// signer signs with one key that every simulation has.
type signer struct{ key *ecdsa.PrivateKey }

func newSigner() signer {
	seed := sha256.Sum256([]byte("the simulation's key"))
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
	if err != nil {
		panic(err) // the seed is a constant
	}
	return signer{key}
}

// Current implements port.Signer.
func (signer) Current(context.Context) (string, error) { return "sim", nil }

// Sign implements port.Signer.
func (s signer) Sign(_ context.Context, _ string, message []byte) ([]byte, error) {
	sum := sha256.Sum256(message)
	r, v, err := ecdsa.Sign(noise{}, s.key, sum[:])
	if err != nil {
		return nil, err
	}
	return append(r.FillBytes(make([]byte, 32)), v.FillBytes(make([]byte, 32))...), nil
}

// Keys implements port.Signer.
func (s signer) Keys(context.Context) ([]port.VerificationKey, error) {
	return []port.VerificationKey{{ID: "sim", Public: &s.key.PublicKey}}, nil
}

// noise is no secret, so that signatures can be had again.
type noise struct{}

// Read is io.Reader.
func (noise) Read(p []byte) (int, error) {
	sum := sha256.Sum256([]byte(hex.EncodeToString(p)))
	return copy(p, bytes.Repeat(sum[:], len(p)/len(sum)+1)), nil
}
