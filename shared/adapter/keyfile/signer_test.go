package keyfile_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/keyfile"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestSigner(t *testing.T) {
	t.Parallel()
	porttest.Signer(t, func(t *testing.T) (port.Signer, func() port.Signer) {
		path := filepath.Join(t.TempDir(), "keys.pem")
		return open(t, path), func() port.Signer { return open(t, path) }
	})
}

func open(t *testing.T, path string) *keyfile.Signer {
	t.Helper()
	s, err := keyfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func current(t *testing.T, s *keyfile.Signer) string {
	t.Helper()
	id, err := s.Current(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestNewFileIsPrivate(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	open(t, filepath.Join(folder, "keys.pem"))
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Fatalf("got files %v (%v), want only the key file", entries, err)
	}
	info, err := entries[0].Info()
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v (%v), want 0600", info.Mode(), err)
	}
}

func TestConcurrentOpensShareAKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.pem")
	ids := make([]string, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			s, err := keyfile.Open(path)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i], _ = s.Current(context.Background())
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("got current keys %v, want one", ids)
		}
	}
}

func TestOldKeyVerifiesAfterANewOne(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	old, fresh := filepath.Join(folder, "old.pem"), filepath.Join(folder, "new.pem")
	oldID, freshID := current(t, open(t, old)), current(t, open(t, fresh))
	both := filepath.Join(folder, "both.pem")
	write(t, both, string(read(t, fresh))+string(read(t, old)), 0o600)
	s := open(t, both)
	keys, err := s.Keys(context.Background())
	if err != nil || len(keys) != 2 || keys[0].ID != freshID || keys[1].ID != oldID {
		t.Fatalf("got keys %v (%v), want %s and %s", keys, err, freshID, oldID)
	}
	if current(t, s) != freshID {
		t.Error("got another current key, want the first")
	}
	if _, err := s.Sign(context.Background(), oldID, []byte("late")); err != nil {
		t.Errorf("old key: got %v, want a signature", err)
	}
}

func TestUnusableFilesAreRefused(t *testing.T) {
	t.Parallel()
	good := filepath.Join(t.TempDir(), "good.pem")
	open(t, good)
	goodText := string(read(t, good))
	for _, row := range []struct {
		name, text string
		mode       os.FileMode
		says       string
	}{
		{"readable by the group", goodText, 0o640, "mode 0640"},
		{"writable by others", goodText, 0o602, "mode 0602"},
		{"empty", "", 0o600, "no key"},
		{"not PEM", "a secret", 0o600, "no key"},
		{"truncated", goodText[:len(goodText)/2], 0o600, "damaged"},
		{"truncated second key", goodText + goodText[:60], 0o600, "damaged"},
		{"the same key twice", goodText + goodText, 0o600, "twice"},
		{"broken inside", strings.Replace(goodText, "M", "A", 1), 0o600, "cannot be parsed"},
		{"another kind of block", pemOf("CERTIFICATE", []byte("x")), 0o600, "CERTIFICATE"},
		{"RSA", pemOf("PRIVATE KEY", rsaKey(t)), 0o600, "P-256"},
		{"another curve", pemOf("PRIVATE KEY", p384Key(t)), 0o600, "P-256"},
		{"too large", strings.Repeat(" ", 1<<17), 0o600, "bytes"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "keys.pem")
			write(t, path, row.text, row.mode)
			_, err := keyfile.Open(path)
			if err == nil || !strings.Contains(err.Error(), row.says) {
				t.Fatalf("got error %v, want one about %q", err, row.says)
			}
			if string(read(t, path)) != row.text {
				t.Error("got a changed file, want it untouched")
			}
		})
	}
}

func TestFolderIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := keyfile.Open(t.TempDir()); err == nil {
		t.Error("folder as a key file: got success")
	}
	if _, err := keyfile.Open(filepath.Join(t.TempDir(), "missing", "keys.pem")); err == nil {
		t.Error("file in a missing folder: got success")
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func rsaKey(t *testing.T) []byte {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return pkcs8(t, private)
}

func p384Key(t *testing.T) []byte {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return pkcs8(t, private)
}

func pkcs8(t *testing.T, private any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return der
}
