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

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/private"
)

// sizeLimit is far above the size of a key file, in bytes.
const sizeLimit = 64 << 10

const blockType = "PRIVATE KEY"

// headRetired is the PEM header of a key that no longer signs.
const headRetired = "Retired"

func readKeys(path string) ([]key, error) {
	text, err := private.Read(path, sizeLimit)
	if err != nil {
		return nil, fmt.Errorf("cannot read the key file: %w", err)
	}
	keys, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("the key file %s is not usable: %w", path, err)
	}
	return keys, nil
}

// makeFile writes a file with a new key. If another process was faster, its file
// is used.
func makeFile(path string) error {
	first, err := newKey()
	if err != nil {
		return err
	}
	text, err := format([]key{first})
	if err == nil {
		err = private.Create(path, text)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func newKey() (key, error) {
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return key{}, err
	}
	id, err := port.KeyID(&made.PublicKey)
	return key{id: id, private: made}, err
}

func format(keys []key) ([]byte, error) {
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

// parse reads the keys of a file. A key of another kind is an error, not
// ignored.
func parse(text []byte) ([]key, error) {
	var keys []key
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		text = rest
		k, err := keyOf(block)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", len(keys)+1, err)
		}
		if slices.ContainsFunc(keys, func(other key) bool { return other.id == k.id }) {
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

func keyOf(block *pem.Block) (key, error) {
	if block.Type != blockType {
		return key{}, fmt.Errorf("it is a %q, not a %q (PKCS #8)", block.Type, blockType)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return key{}, errors.New("it cannot be parsed")
	}
	found, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || found.Curve != elliptic.P256() {
		return key{}, errors.New("it is not for ECDSA on P-256")
	}
	retired := time.Time{}
	if at := block.Headers[headRetired]; at != "" {
		if retired, err = time.Parse(time.RFC3339, at); err != nil {
			return key{}, fmt.Errorf("its header %s has to be a time as 2026-03-01T08:00:00Z", headRetired)
		}
	}
	id, err := port.KeyID(&found.PublicKey)
	return key{id, found, retired}, err
}
