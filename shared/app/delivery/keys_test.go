package delivery_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	systemclock "github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// countedSigner counts signatures.
type countedSigner struct {
	port.Signer
	signed int
}

func (s *countedSigner) Sign(ctx context.Context, id string, message []byte) ([]byte, error) {
	s.signed++
	return s.Signer.Sign(ctx, id, message)
}

func TestEndorsedKeys(t *testing.T) {
	t.Parallel()
	porttest.EventKeys(t, func(*testing.T) porttest.EventKeysHarness {
		seed := make([]byte, 32)
		now := systemclock.NewVirtual(relayStart)
		keys := delivery.NewEndorsedKeys(func(context.Context) ([]byte, error) { return seed, nil },
			fake.NewEventKeyStore(nil), fake.NewSigner(nil, "token-key"), now)
		use := func() { // which publishes the key
			if _, err := keys.Signing(context.Background()); err != nil {
				panic(err)
			}
		}
		use()
		return porttest.EventKeysHarness{Keys: keys, Rotate: func() {
			seed = append([]byte{seed[0] + 1}, seed[1:]...)
			now.Advance(1)
			use()
		}}
	})
}

// TestEventKeyIsEndorsedOnce verifies the signature by the key of tokens, and that the
// key is not signed for each event.
func TestEventKeyIsEndorsedOnce(t *testing.T) {
	t.Parallel()
	signer := &countedSigner{Signer: fake.NewSigner(nil, "token-key")}
	keys := delivery.NewEndorsedKeys(func(context.Context) ([]byte, error) { return make([]byte, 32), nil },
		fake.NewEventKeyStore(nil), signer, systemclock.System{})
	for range 3 {
		if _, err := keys.Signing(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	all, err := keys.Published(t.Context())
	if err != nil || len(all) != 1 || signer.signed != 1 {
		t.Fatalf("got %d keys and %d signatures (%v), want 1 and 1", len(all), signer.signed, err)
	}
	var key struct {
		X           string
		Endorsement struct{ KID, Alg, Signature string }
	}
	if err := json.Unmarshal(all[0], &key); err != nil {
		t.Fatal(err)
	}
	public, err := signer.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	signature, err := base64.RawURLEncoding.DecodeString(key.Endorsement.Signature)
	digest := sha256.Sum256(fmt.Appendf(nil, `{"crv":"Ed25519","kty":"OKP","x":"%s"}`, key.X))
	if err != nil || len(signature) != 64 || key.Endorsement.KID != public[0].ID ||
		!ecdsa.Verify(public[0].Public, digest[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		t.Errorf("got endorsement %+v (%v), want a signature by %s", key.Endorsement, err, public[0].ID)
	}
}

// TestEventKeyIsEndorsedOnceForAllProcesses makes new processes with the same store, and
// replaces the seed: only a new key is signed.
func TestEventKeyIsEndorsedOnceForAllProcesses(t *testing.T) {
	t.Parallel()
	signer, store := &countedSigner{Signer: fake.NewSigner(nil, "token-key")}, fake.NewEventKeyStore(nil)
	now := systemclock.NewVirtual(relayStart)
	for n, row := range []struct {
		seed   byte
		signed int
	}{{1, 1}, {1, 1}, {2, 2}, {2, 2}, {1, 2}} {
		keys := delivery.NewEndorsedKeys(func(context.Context) ([]byte, error) { return bytes.Repeat([]byte{row.seed}, 32), nil },
			store, signer, now)
		if _, err := keys.Signing(t.Context()); err != nil {
			t.Fatal(err)
		}
		now.Advance(time.Second)
		if signer.signed != row.signed {
			t.Errorf("process %d: got %d signatures, want %d", n+1, signer.signed, row.signed)
		}
	}
	if all, err := store.StoredEventKeys(t.Context()); err != nil || len(all) != 2 {
		t.Errorf("got %d keys (%v), want 2", len(all), err)
	}
}

// TestUnpublishedKeySignsNothing fails the publication of the key.
func TestUnpublishedKeySignsNothing(t *testing.T) {
	t.Parallel()
	for _, fate := range []fake.Fate{fake.Lost, fake.Unsure} {
		store := fake.NewEventKeyStore(fake.Script(fate))
		keys := delivery.NewEndorsedKeys(func(context.Context) ([]byte, error) { return make([]byte, 32), nil },
			store, fake.NewSigner(nil, "token-key"), systemclock.System{})
		if _, err := keys.Signing(t.Context()); err == nil {
			t.Error("got a key that is not known to be published, want an error")
		}
		if _, err := keys.Signing(t.Context()); err != nil {
			t.Errorf("got %v, want a key", err)
		}
		if all, err := keys.Published(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("got %d keys (%v), want 1", len(all), err)
		}
	}
}
