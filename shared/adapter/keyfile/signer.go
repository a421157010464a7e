// Package keyfile keeps the keys that sign tokens in a file, for a Sortie that
// runs on one host.
//
// The file has one or more private keys for ECDSA on P-256, as PKCS #8 in PEM,
// the newest first: it signs, and the signatures of all are good. Rotate puts a
// new one before the others, and takes those out whose last token has expired. A
// key's id is its thumbprint (RFC 7638), which needs no name in the file.
//
// The package promises that a file is there whole or not at all, whoever makes
// or rotates it at the same time, and that a signer sees a rotation at its next
// use. It refuses a file that others than its owner can read.
package keyfile

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Signer signs with the keys of a file, which it reads again when the file is
// another. It is safe for use by many goroutines.
type Signer struct {
	path string

	mu   sync.Mutex
	was  fs.FileInfo
	keys []key
}

var _ port.Signer = (*Signer)(nil)

type key struct {
	id      string
	private *ecdsa.PrivateKey
	// retired is when another became the first; zero for the first.
	retired time.Time
}

// Open reads the keys, and makes the file with a new one where there is none;
// its folder must exist. The error says what is wrong with a file that is there.
func Open(path string) (*Signer, error) {
	s := &Signer{path: path}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := makeFile(path); err != nil {
			return nil, fmt.Errorf("cannot make the key file: %w", err)
		}
	}
	_, err := s.load()
	return s, err
}

// load gives the keys of the file as it is now.
func (s *Signer) load() ([]key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, err := os.Stat(s.path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the key file: %w", err)
	}
	if s.was != nil && os.SameFile(s.was, is) && s.was.ModTime().Equal(is.ModTime()) && s.was.Size() == is.Size() {
		return s.keys, nil
	}
	keys, err := readKeys(s.path)
	if err != nil {
		return nil, err
	}
	s.was, s.keys = is, keys
	return keys, nil
}

// now is load for a use; who cannot read the keys tries again.
func (s *Signer) now() ([]key, error) {
	keys, err := s.load()
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "the signing keys cannot be read now; try again")
	}
	return keys, nil
}

// Current names the first key.
func (s *Signer) Current(context.Context) (string, error) {
	keys, err := s.now()
	if err != nil {
		return "", err
	}
	return keys[0].id, nil
}

// Sign signs the message.
func (s *Signer) Sign(_ context.Context, keyID string, message []byte) ([]byte, error) {
	keys, err := s.now()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(keys, func(k key) bool { return k.id == keyID })
	if at < 0 {
		return nil, port.ErrNotFound
	}
	digest := sha256.Sum256(message)
	r, v, err := ecdsa.Sign(rand.Reader, keys[at].private, digest[:])
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
func (s *Signer) Keys(context.Context) ([]port.VerificationKey, error) {
	keys, err := s.now()
	if err != nil {
		return nil, err
	}
	public := make([]port.VerificationKey, len(keys))
	for i, k := range keys {
		public[i] = port.VerificationKey{ID: k.id, Public: &k.private.PublicKey}
	}
	return public, nil
}
