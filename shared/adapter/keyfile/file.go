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
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
)

// sizeLimit is far above the size of a key file, in bytes.
const sizeLimit = 64 << 10

const blockType = "PRIVATE KEY"

// headRetired is the PEM header of a key that no longer signs.
const headRetired = "Retired"

func readKeys(path string) ([]key, error) {
	text, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the key file: %w", err)
	}
	keys, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("the key file %s is not usable: %w", path, err)
	}
	return keys, nil
}

func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("others than its owner can use %s (mode %04o); make it 0600, and its keys new if others have read it",
			path, info.Mode().Perm())
	case info.Size() > sizeLimit:
		return nil, fmt.Errorf("%s has more than %d bytes", path, sizeLimit)
	}
	return io.ReadAll(io.LimitReader(file, sizeLimit))
}

// makeFile writes a file with a new key beside path and links it there. If
// another process was faster, its file is used.
func makeFile(path string) error {
	first, err := newKey()
	if err != nil {
		return err
	}
	return place(path, []key{first}, func(made string) error {
		if err := os.Link(made, path); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	})
}

// place writes keys to a temporary file and calls put to move it to its place.
func place(path string, keys []key, put func(made string) error) (err error) {
	text, err := format(keys)
	if err != nil {
		return err
	}
	folder := filepath.Dir(path)
	file, err := os.CreateTemp(folder, ".key-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if gone := os.Remove(file.Name()); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}()
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return errors.Join(put(file.Name()), syncFolder(folder))
}

func newKey() (key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return key{}, err
	}
	id, err := port.KeyID(&private.PublicKey)
	return key{id: id, private: private}, err
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

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
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
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return key{}, errors.New("it is not for ECDSA on P-256")
	}
	retired := time.Time{}
	if at := block.Headers[headRetired]; at != "" {
		if retired, err = time.Parse(time.RFC3339, at); err != nil {
			return key{}, fmt.Errorf("its header %s has to be a time as 2026-03-01T08:00:00Z", headRetired)
		}
	}
	id, err := port.KeyID(&private.PublicKey)
	return key{id, private, retired}, err
}
