package porttest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"errors"
	"math/big"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/shared/port"
)

// Signer is the conformance suite of port.Signer. open makes a signer
// on fresh keys for t; reopen makes another one on the same keys, as another
// process would.
func Signer(t *testing.T, open func(t *testing.T) (s port.Signer, reopen func() port.Signer)) {
	t.Helper()
	t.Run("what it signs its public key verifies", func(t *testing.T) {
		t.Parallel()
		s, _ := open(t)
		for _, message := range []string{"", "a message", string(make([]byte, 1<<16))} {
			signature := sign(t, s, message)
			if len(signature) != 64 {
				t.Fatalf("a signature has %d bytes, want R and S in 64", len(signature))
			}
			if !verifies(t, s, message, signature) {
				t.Errorf("the signature of a message of %d bytes does not verify", len(message))
			}
			if verifies(t, s, message+"!", signature) {
				t.Error("the signature verifies for another message")
			}
		}
	})
	t.Run("short halves are filled up", func(t *testing.T) {
		t.Parallel()
		s, _ := open(t)
		for range 600 { // one in 128 signatures has a half that begins with a zero
			if signature := sign(t, s, "again"); len(signature) != 64 || !verifies(t, s, "again", signature) {
				t.Fatalf("a signature of %d bytes does not verify", len(signature))
			}
		}
	})
	t.Run("the current key is the first", func(t *testing.T) {
		t.Parallel()
		s, _ := open(t)
		keys := keysOf(t, s)
		current, err := s.Current(context.Background())
		if err != nil || len(keys) == 0 || keys[0].ID != current || current == "" {
			t.Fatalf("current is %q (%v), and the keys are %v", current, err, keys)
		}
		seen := map[string]bool{}
		for _, key := range keys {
			if key.Public == nil || key.Public.Curve != elliptic.P256() || seen[key.ID] {
				t.Errorf("key %q is not one key on P-256", key.ID)
			}
			seen[key.ID] = true
		}
	})
	t.Run("an unknown key is not found", func(t *testing.T) {
		t.Parallel()
		s, _ := open(t)
		for _, id := range []string{"", "unknown", "../keys"} {
			if _, err := s.Sign(context.Background(), id, []byte("a message")); !errors.Is(err, port.ErrNotFound) {
				t.Errorf("signing with key %q: %v, want ErrNotFound", id, err)
			}
		}
	})
	t.Run("keys are the same for who opens them again", func(t *testing.T) {
		t.Parallel()
		s, reopen := open(t)
		signature := sign(t, s, "kept")
		again := reopen()
		if !verifies(t, again, "kept", signature) {
			t.Error("a signature does not verify after reopening")
		}
		if before, after := keysOf(t, s), keysOf(t, again); before[0].ID != after[0].ID || len(before) != len(after) {
			t.Errorf("the keys were %v and are %v", before, after)
		}
	})
	t.Run("many sign at once", func(t *testing.T) {
		t.Parallel()
		s, _ := open(t)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				current, err := s.Current(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := s.Sign(context.Background(), current, []byte("at once")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

func sign(t *testing.T, s port.Signer, message string) []byte {
	t.Helper()
	current, err := s.Current(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	signature, err := s.Sign(context.Background(), current, []byte(message))
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

func verifies(t *testing.T, s port.Signer, message string, signature []byte) bool {
	t.Helper()
	digest := sha256.Sum256([]byte(message))
	r, v := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
	return ecdsa.Verify(keysOf(t, s)[0].Public, digest[:], r, v)
}

func keysOf(t *testing.T, s port.Signer) []port.VerificationKey {
	t.Helper()
	keys, err := s.Keys(context.Background())
	if err != nil || len(keys) == 0 {
		t.Fatalf("there are no keys: %v", err)
	}
	return keys
}
