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

// Signer is the conformance suite of port.Signer. open returns a signer with new keys, and a
// function that returns another signer with the same keys, as after a restart.
func Signer(t *testing.T, open func(t *testing.T) (s port.Signer, reopen func() port.Signer)) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, s port.Signer, reopen func() port.Signer){
		"signatures verify with the public key": signaturesVerify,
		"R and S are padded":                    signaturesArePadded,
		"current key is the first":              currentKeyIsFirst,
		"unknown key":                           unknownKeyIsRefused,
		"keys survive a restart":                keysSurviveARestart,
		"concurrent signing":                    signsConcurrently,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, reopen := open(t)
			test(t, s, reopen)
		})
	}
}

func signaturesVerify(t *testing.T, s port.Signer, _ func() port.Signer) {
	t.Helper()
	for _, message := range []string{"", "a message", string(make([]byte, 1<<16))} {
		signature := sign(t, s, message)
		if len(signature) != 64 {
			t.Fatalf("got a signature of %d bytes, want R and S in 64", len(signature))
		}
		if !verifies(t, s, message, signature) {
			t.Errorf("got an invalid signature of a message of %d bytes", len(message))
		}
		if verifies(t, s, message+"!", signature) {
			t.Error("got a signature that is valid for another message")
		}
	}
}

func signaturesArePadded(t *testing.T, s port.Signer, _ func() port.Signer) {
	t.Helper()
	for range 600 { // in one of 128 signatures, R or S starts with a zero byte
		if signature := sign(t, s, "again"); len(signature) != 64 || !verifies(t, s, "again", signature) {
			t.Fatalf("got an invalid signature of %d bytes", len(signature))
		}
	}
}

func currentKeyIsFirst(t *testing.T, s port.Signer, _ func() port.Signer) {
	t.Helper()
	keys := keysOf(t, s)
	current, err := s.Current(context.Background())
	if err != nil || len(keys) == 0 || keys[0].ID != current || current == "" {
		t.Fatalf("got current key %q (%v) of the keys %v, want the first", current, err, keys)
	}
	seen := map[string]bool{}
	for _, key := range keys {
		if key.Public == nil || key.Public.Curve != elliptic.P256() || seen[key.ID] {
			t.Errorf("got key %q, want a unique key on P-256", key.ID)
		}
		seen[key.ID] = true
	}
}

func unknownKeyIsRefused(t *testing.T, s port.Signer, _ func() port.Signer) {
	t.Helper()
	for _, id := range []string{"", "unknown", "../keys"} {
		if _, err := s.Sign(context.Background(), id, []byte("a message")); !errors.Is(err, port.ErrNotFound) {
			t.Errorf("signing with key %q: got %v, want ErrNotFound", id, err)
		}
	}
}

func keysSurviveARestart(t *testing.T, s port.Signer, reopen func() port.Signer) {
	t.Helper()
	signature := sign(t, s, "kept")
	again := reopen()
	if !verifies(t, again, "kept", signature) {
		t.Error("got an invalid signature after reopening")
	}
	if before, after := keysOf(t, s), keysOf(t, again); before[0].ID != after[0].ID || len(before) != len(after) {
		t.Errorf("got keys %v, then %v; want the same", before, after)
	}
}

func signsConcurrently(t *testing.T, s port.Signer, _ func() port.Signer) {
	t.Helper()
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
		t.Fatalf("got no keys: %v", err)
	}
	return keys
}
