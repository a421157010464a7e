package keyfile

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// sizeLimit is far more than the keys that anybody keeps, in bytes.
const sizeLimit = 64 << 10

const blockType = "PRIVATE KEY"

func readOrMake(path string) ([]key, error) {
	text, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeFile(path); err != nil {
			return nil, fmt.Errorf("cannot make the key file: %w", err)
		}
		// Another process may have been first; its file counts.
		text, err = read(path)
	}
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

// makeFile writes a file with a new key beside path and links it there, which
// fails where somebody else was first.
func makeFile(path string) (err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	folder := filepath.Dir(path)
	file, err := os.CreateTemp(folder, ".key-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	_, err = file.Write(pem.EncodeToMemory(&pem.Block{Type: blockType, Bytes: der}))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err = os.Link(file.Name(), path); errors.Is(err, fs.ErrExist) {
		return nil
	}
	return errors.Join(err, syncFolder(folder))
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// parse reads the keys of a file. A key that it cannot use is an error: who put
// it there expects it to count.
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
			return nil, fmt.Errorf("key %d stands there twice", len(keys)+1)
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
	id, err := thumbprint(&private.PublicKey)
	return key{id, private}, err
}

// thumbprint is the key's id by RFC 7638: SHA-256 over the members of its JWK in
// their order.
func thumbprint(public *ecdsa.PublicKey) (string, error) {
	point, err := public.Bytes() // 4, X, Y
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"P-256","kty":"EC","x":"%s","y":"%s"}`,
		text.EncodeToString(point[1:33]), text.EncodeToString(point[33:])))
	return text.EncodeToString(sum[:]), nil
}
