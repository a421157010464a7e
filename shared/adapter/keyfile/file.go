package keyfile

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/base/private"
	"github.com/sortie-dev/sortie/shared/port"
)

// sizeLimit is far above the size of a key file, in bytes.
const sizeLimit = 64 << 10

const blockType = "PRIVATE KEY"

// headRetired is the PEM header of a key that no longer signs.
const headRetired = "Retired"

// kind describes an algorithm of keys.
type kind[P any] struct {
	// name is the algorithm.
	name string
	make func() (P, error)
	// id returns the id of a key. It returns an error for a key of another kind.
	id func(private P) (string, error)
}

// tokens are the keys that sign tokens.
var tokens = kind[*ecdsa.PrivateKey]{
	"ECDSA on P-256",
	func() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) },
	func(private *ecdsa.PrivateKey) (string, error) {
		if private.Curve != elliptic.P256() {
			return "", errors.New("another curve")
		}
		return port.KeyID(&private.PublicKey)
	},
}

func readKeys[P any](path string, of kind[P]) ([]key[P], error) {
	text, err := private.Read(path, sizeLimit)
	if err != nil {
		return nil, fmt.Errorf("cannot read the key file: %w", err)
	}
	keys, err := parse(text, of)
	if err != nil {
		return nil, fmt.Errorf("the key file %s is not usable: %w", path, err)
	}
	return keys, nil
}

// makeFile writes a file with a new key. If another process has written the file first, that
// file is used.
func makeFile[P any](path string, of kind[P]) error {
	first, err := newKey(of)
	if err != nil {
		return err
	}
	text, err := format([]key[P]{first})
	if err == nil {
		err = private.Create(path, text)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func newKey[P any](of kind[P]) (key[P], error) {
	made, err := of.make()
	if err != nil {
		return key[P]{}, err
	}
	id, err := of.id(made)
	return key[P]{id: id, private: made}, err
}

func format[P any](keys []key[P]) ([]byte, error) {
	var text []byte
	for _, k := range keys {
		der, err := x509.MarshalPKCS8PrivateKey(k.private)
		if err != nil {
			return nil, err
		}
		block := &pem.Block{Type: blockType, Bytes: der}
		if !k.retired.IsZero() {
			block.Headers = map[string]string{headRetired: k.retired.UTC().Format(time.RFC3339)}
		}
		text = append(text, pem.EncodeToMemory(block)...)
	}
	return text, nil
}

// parse reads the keys of a file. It returns an error for a key of another kind.
func parse[P any](text []byte, of kind[P]) ([]key[P], error) {
	var keys []key[P]
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		text = rest
		k, err := keyOf(block, of)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", len(keys)+1, err)
		}
		if slices.ContainsFunc(keys, func(other key[P]) bool { return other.id == k.id }) {
			return nil, fmt.Errorf("key %d is listed twice", len(keys)+1)
		}
		keys = append(keys, k)
	}
	switch {
	case bytes.Contains(text, []byte("-----BEGIN")):
		return nil, fmt.Errorf("what follows key %d is damaged", len(keys))
	case len(keys) == 0:
		return nil, errors.New("it has no key")
	}
	return keys, nil
}

func keyOf[P any](block *pem.Block, of kind[P]) (key[P], error) {
	if block.Type != blockType {
		return key[P]{}, fmt.Errorf("it is a %q, not a %q (PKCS #8)", block.Type, blockType)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return key[P]{}, errors.New("it cannot be parsed")
	}
	private, ok := parsed.(P)
	id := ""
	if ok {
		id, err = of.id(private)
	}
	if !ok || err != nil {
		return key[P]{}, fmt.Errorf("it is not for %s", of.name)
	}
	retired := time.Time{}
	if at := block.Headers[headRetired]; at != "" {
		if retired, err = time.Parse(time.RFC3339, at); err != nil {
			return key[P]{}, fmt.Errorf("its header %s has to be a time as 2026-03-01T08:00:00Z", headRetired)
		}
	}
	return key[P]{id, private, retired}, nil
}
