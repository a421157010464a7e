package kms_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/kms"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// service is a KMS with some keys.
type service struct {
	mu sync.Mutex
	// reads counts the calls for a public key, signs those for a signature.
	reads, signs int
	keys         map[string]*ecdsa.PrivateKey
	// refusals are the error codes by key.
	refusals map[string]string
	usage    string
}

// setup returns a service with these keys.
func setup(t *testing.T, names ...string) (*service, aws.Config) {
	t.Helper()
	s := &service{keys: map[string]*ecdsa.PrivateKey{}, refusals: map[string]string{}, usage: "SIGN_VERIFY"}
	for _, name := range names {
		s.make(t, name, elliptic.P256())
	}
	return s, awstest.Serve(t, map[string]awstest.Call{"GetPublicKey": s.public, "Sign": s.sign})
}

func (s *service) make(t *testing.T, name string, curve elliptic.Curve) {
	t.Helper()
	private, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s.keys[name] = private
}

// request contains the fields that both calls have.
type request struct {
	KeyId, MessageType, SigningAlgorithm string //nolint:revive,staticcheck // the API's spelling
	Message                              []byte
}

func (s *service) find(input json.RawMessage) (request, *ecdsa.PrivateKey, error) {
	var r request
	if err := json.Unmarshal(input, &r); err != nil {
		return r, nil, err
	}
	if code := s.refusals[r.KeyId]; code != "" {
		return r, nil, awstest.Refusal{Code: code, Message: "the account is 123456789012"}
	}
	private, known := s.keys[r.KeyId]
	if !known {
		return r, nil, awstest.Refusal{Code: "NotFoundException", Message: "no such key"}
	}
	return r, private, nil
}

func (s *service) public(input json.RawMessage) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	r, private, err := s.find(input)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	return map[string]any{"KeyId": "arn:aws:kms:eu-central-1:123456789012:key/" + r.KeyId, "PublicKey": der, "KeyUsage": s.usage}, err
}

func (s *service) sign(input json.RawMessage) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signs++
	r, private, err := s.find(input)
	if err != nil {
		return nil, err
	}
	if r.MessageType != "DIGEST" || r.SigningAlgorithm != "ECDSA_SHA_256" || len(r.Message) != 32 {
		return nil, fmt.Errorf("got %d bytes of type %s with algorithm %s", len(r.Message), r.MessageType, r.SigningAlgorithm)
	}
	der, err := ecdsa.SignASN1(rand.Reader, private, r.Message)
	return map[string]any{"KeyId": r.KeyId, "Signature": der, "SigningAlgorithm": r.SigningAlgorithm}, err
}

func signer(t *testing.T, cfg aws.Config, keys ...string) *kms.Signer {
	t.Helper()
	s, err := kms.New(cfg, keys...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSigner(t *testing.T) {
	t.Parallel()
	porttest.Signer(t, func(t *testing.T) (port.Signer, func() port.Signer) {
		t.Helper()
		_, cfg := setup(t, "new", "old")
		again := func() port.Signer { return signer(t, cfg, "new", "old") }
		return again(), again
	})
}

func TestPublicKeysAreReadOnce(t *testing.T) {
	t.Parallel()
	service, cfg := setup(t, "new", "old")
	s := signer(t, cfg, "new", "old")
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if keys, err := s.Keys(context.Background()); err != nil || len(keys) != 2 {
				t.Errorf("got %d keys (%v)", len(keys), err)
			}
			_, _ = s.Sign(context.Background(), "unknown", nil)
		})
	}
	all.Wait()
	if service.reads != 2 || service.signs != 0 {
		t.Errorf("got %d calls for two keys, and %d for an unknown one", service.reads, service.signs)
	}
}

func TestKeyIDsHideTheAccount(t *testing.T) {
	t.Parallel()
	_, cfg := setup(t, "mrk-1234")
	id, err := signer(t, cfg, "mrk-1234").Current(t.Context())
	if err != nil || strings.Contains(id, "123456789012") || strings.Contains(id, "mrk") || len(id) != 43 {
		t.Errorf("got key id %q (%v)", id, err)
	}
}

// TestOutageIsRetried checks that the next call reads the keys again.
func TestOutageIsRetried(t *testing.T) {
	t.Parallel()
	service, cfg := setup(t, "a")
	s := signer(t, cfg, "a")
	service.refusals["a"] = "AccessDeniedException"
	_, err := s.Keys(t.Context())
	if !fault.Is(err, fault.Unavailable) || strings.Contains(fault.Of(err).Message, "1234") {
		t.Errorf("got error %v", err)
	}
	delete(service.refusals, "a")
	id, err := s.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	service.refusals["a"] = "AccessDeniedException"
	if _, err := s.Sign(t.Context(), id, []byte("x")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got error %v", err)
	}
	service.refusals["a"] = "DisabledException"
	if _, err := s.Sign(t.Context(), id, []byte("x")); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("got error %v", err)
	}
}

// TestDeletedKeyBlocksNoOther deletes a key that does not sign, then the one
// that signs.
func TestDeletedKeyBlocksNoOther(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"NotFoundException", "DisabledException", "KMSInvalidStateException"} {
		service, cfg := setup(t, "new", "old", "older")
		service.refusals["old"] = code
		keys, err := signer(t, cfg, "new", "old", "older").Keys(t.Context())
		if err != nil || len(keys) != 2 {
			t.Errorf("%s: got %d keys (%v)", code, len(keys), err)
		}
		if _, err := signer(t, cfg, "old", "new").Keys(t.Context()); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s of the signing key: got %v", code, err)
		}
	}
}

func TestOtherKeysAreRefused(t *testing.T) {
	t.Parallel()
	service, cfg := setup(t)
	service.make(t, "larger", elliptic.P384())
	service.make(t, "good", elliptic.P256())
	if _, err := signer(t, cfg, "larger").Keys(t.Context()); err == nil {
		t.Error("key on P-384: got success")
	}
	service.usage = "KEY_AGREEMENT"
	if _, err := signer(t, cfg, "good").Keys(t.Context()); err == nil {
		t.Error("key not for signing: got success")
	}
}

func TestAllProblemsOfTheKeysAreReported(t *testing.T) {
	t.Parallel()
	_, cfg := setup(t)
	if _, err := kms.New(cfg); err == nil {
		t.Error("no keys: got success")
	}
	_, err := kms.New(cfg, "a", "", "alias/sortie", "arn:aws:kms:r:1:alias/sortie", "a")
	for _, part := range []string{"key 2", "alias/sortie is", ":alias/sortie is", "a is listed twice"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got an error without %q: %v", part, err)
		}
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	t.Parallel()
	_, cfg := setup(t, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := signer(t, cfg, "a")
	if _, err := s.Keys(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	if _, err := s.Keys(t.Context()); err != nil {
		t.Errorf("next caller: got %v", err)
	}
}
