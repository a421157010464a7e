package keyfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/keyfile"
)

func TestEventKeys(t *testing.T) {
	t.Parallel()
	porttest.EventKeys(t, func(t *testing.T) porttest.EventKeysHarness {
		t.Helper()
		path := filepath.Join(t.TempDir(), "events.pem")
		keys, err := keyfile.OpenEvents(path)
		if err != nil {
			t.Fatal(err)
		}
		return porttest.EventKeysHarness{Keys: keys, Rotate: func() {
			if _, err := keyfile.RotateEvents(path, moment); err != nil {
				t.Fatal(err)
			}
		}}
	})
}

// TestKeysHaveFilesOfTheirOwn checks that a key of tokens signs no events, and that a key of
// events signs no tokens.
func TestKeysHaveFilesOfTheirOwn(t *testing.T) {
	t.Parallel()
	of, ofTokens := filepath.Join(t.TempDir(), "events.pem"), filepath.Join(t.TempDir(), "tokens.pem")
	if _, err := keyfile.OpenEvents(of); err != nil {
		t.Fatal(err)
	}
	if _, err := keyfile.Open(ofTokens); err != nil {
		t.Fatal(err)
	}
	if _, err := keyfile.Open(of); err == nil || !strings.Contains(err.Error(), "ECDSA on P-256") {
		t.Errorf("got %v for tokens, want an error about the kind of the key", err)
	}
	if _, err := keyfile.OpenEvents(ofTokens); err == nil || !strings.Contains(err.Error(), "Ed25519") {
		t.Errorf("got %v for events, want an error about the kind of the key", err)
	}
	if info, err := os.Stat(of); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got file %v (%v), want only its owner to read it", info, err)
	}
}
