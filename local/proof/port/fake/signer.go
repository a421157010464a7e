package fake

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/asn1"
	"fmt"
	"math/big"
	"slices"

	"github.com/sortie-dev/sortie/shared/port"
)

// Signer signs with keys that are derived from seeds. Another Signer with the same seeds has
// the same keys. Its signatures are deterministic (RFC 6979). It is safe for concurrent use.
type Signer struct {
	calls
	keys []key
}

type key struct {
	id      string
	private *ecdsa.PrivateKey
}

var _ port.Signer = (*Signer)(nil)

// NewSigner returns a Signer with one key for each seed. The first one is the current key.
func NewSigner(plan Plan, seeds ...string) *Signer {
	s := &Signer{calls: calls{plan: plan}}
	for _, seed := range seeds {
		sum := sha256.Sum256([]byte(seed))
		private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), sum[:])
		if err != nil {
			panic(fmt.Sprintf("seed %q: %v", seed, err))
		}
		id, err := port.KeyID(&private.PublicKey)
		if err != nil {
			panic(err) // every P-256 key has an id
		}
		s.keys = append(s.keys, key{id, private})
	}
	return s
}

// Current implements port.Signer. It returns port.ErrNotFound if there are no keys.
func (s *Signer) Current(ctx context.Context) (string, error) {
	return result(ctx, &s.calls, "Current", "", false, func() (string, error) {
		if len(s.keys) == 0 {
			return "", port.ErrNotFound
		}
		return s.keys[0].id, nil
	})
}

// Sign implements port.Signer.
func (s *Signer) Sign(ctx context.Context, keyID string, message []byte) ([]byte, error) {
	return result(ctx, &s.calls, "Sign", keyID, false, func() ([]byte, error) {
		i := slices.IndexFunc(s.keys, func(k key) bool { return k.id == keyID })
		if i < 0 {
			return nil, fmt.Errorf("cannot sign with key %q: %w", keyID, port.ErrNotFound)
		}
		digest := sha256.Sum256(message)
		der, err := s.keys[i].private.Sign(nil, digest[:], crypto.SHA256)
		if err != nil {
			return nil, err
		}
		var half struct{ R, S *big.Int }
		if _, err := asn1.Unmarshal(der, &half); err != nil {
			return nil, err
		}
		return append(half.R.FillBytes(make([]byte, 32)), half.S.FillBytes(make([]byte, 32))...), nil
	})
}

// Keys implements port.Signer.
func (s *Signer) Keys(ctx context.Context) ([]port.VerificationKey, error) {
	return result(ctx, &s.calls, "Keys", "", false, func() (keys []port.VerificationKey, _ error) {
		for _, k := range s.keys {
			keys = append(keys, port.VerificationKey{ID: k.id, Public: &k.private.PublicKey})
		}
		return keys, nil
	})
}
