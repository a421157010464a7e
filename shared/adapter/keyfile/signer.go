// Package keyfile keeps the keys that sign tokens in a file, and those that sign events
// in another, for a Sortie that runs on one host.
//
// A file has one or more private keys, as PKCS #8 in PEM, newest first: for ECDSA on P-256, or
// Ed25519 keys of events. The first one signs. Signatures of all are valid. Rotate adds a new
// first key and removes the keys whose last token has expired. Keys of events are never
// removed. The id of a token's key is its thumbprint (RFC 7638).
//
// The file is complete or absent, even if several processes create or rotate it concurrently. A
// signer uses a rotated file at its next call. A file that other users can read is refused.
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

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Signer signs tokens with the keys of a file and reads it again when the file
// changes. It is safe for concurrent use.
type Signer struct{ file[*ecdsa.PrivateKey] }

var _ port.Signer = (*Signer)(nil)

// file caches the keys of one kind in a file.
type file[P any] struct {
	path string
	kind kind[P]

	mu   sync.Mutex
	was  fs.FileInfo
	keys []key[P]
}

type key[P any] struct {
	id      string
	private P
	// retired is the time at which another key became the first; zero for the first key.
	retired time.Time
}

// Open reads the keys, or creates the file with a new key. The folder of the file must exist.
// The error describes an invalid file.
func Open(path string) (*Signer, error) {
	s := &Signer{file[*ecdsa.PrivateKey]{path: path, kind: tokens}}
	return s, s.open()
}

func (s *file[P]) open() error {
	if _, err := os.Stat(s.path); errors.Is(err, fs.ErrNotExist) {
		if err := makeFile(s.path, s.kind); err != nil {
			return fmt.Errorf("cannot make the key file: %w", err)
		}
	}
	_, err := s.load()
	return err
}

// load returns the current keys of the file.
func (s *file[P]) load() ([]key[P], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, err := os.Stat(s.path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the key file: %w", err)
	}
	if s.was != nil && os.SameFile(s.was, is) && s.was.ModTime().Equal(is.ModTime()) && s.was.Size() == is.Size() {
		return s.keys, nil
	}
	keys, err := readKeys(s.path, s.kind)
	if err != nil {
		return nil, err
	}
	s.was, s.keys = is, keys
	return keys, nil
}

// now is like load, with an Unavailable fault for errors.
func (s *file[P]) now() ([]key[P], error) {
	keys, err := s.load()
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "the signing keys cannot be read now; try again")
	}
	return keys, nil
}

// Current implements port.Signer.
func (s *Signer) Current(context.Context) (string, error) {
	keys, err := s.now()
	if err != nil {
		return "", err
	}
	return keys[0].id, nil
}

// Sign implements port.Signer.
func (s *Signer) Sign(_ context.Context, keyID string, message []byte) ([]byte, error) {
	keys, err := s.now()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(keys, func(k key[*ecdsa.PrivateKey]) bool { return k.id == keyID })
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

// Keys implements port.Signer.
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
