package catalog

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// PayloadType is the DSSE payload type of a signature: an in-toto statement.
const PayloadType = "application/vnd.in-toto+json"

// statementTypes are the accepted versions of in-toto statements.
var statementTypes = []string{"https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1"}

// statement is an in-toto statement with its subjects. The predicate is not decoded.
type statement struct {
	Type    string `json:"_type"`
	Subject []struct {
		Name   string            `json:"name"`
		Digest map[string]string `json:"digest"`
	} `json:"subject"`
}

// Keys are the public keys that the deployment trusts to sign models.
type Keys []Key

// Key is a public Ed25519 key.
type Key struct{ public ed25519.PublicKey }

// ParseKey parses a public Ed25519 key: its 32 bytes in standard or URL-safe base64.
func ParseKey(text string) (Key, error) {
	plain := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	public, err := base64.RawStdEncoding.DecodeString(plain)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return Key{}, fmt.Errorf("malformed key %.60q, want the base64 of the %d bytes of a public Ed25519 key", text, ed25519.PublicKeySize)
	}
	return Key{public}, nil
}

// ID returns the id of the key: "model-" and 16 hexadecimal digits.
func (k Key) ID() string {
	sum := sha256.Sum256(k.public)
	return "model-" + hex.EncodeToString(sum[:8])
}

// KeyID returns ID. KeyID, Public and Verify implement dsse.Verifier.
func (k Key) KeyID() (string, error) { return k.ID(), nil }

// Public returns the public key as an ed25519.PublicKey.
func (k Key) Public() crypto.PublicKey { return k.public }

// Verify returns an error unless signature is the key's signature of data.
func (k Key) Verify(_ context.Context, data, signature []byte) error {
	if !ed25519.Verify(k.public, data, signature) {
		return errors.New("the signature does not match")
	}
	return nil
}

// read decodes a signature into its envelope and statement. It does not verify them.
func read(signature []byte) (e dsse.Envelope, s statement, err error) {
	const want = "want a DSSE envelope with a statement of in-toto"
	if len(signature) > MaxSignature {
		return e, s, fmt.Errorf("signature of %d bytes, want at most %d", len(signature), MaxSignature)
	}
	if err := json.Unmarshal(signature, &e); err != nil {
		return e, s, errors.New("malformed signature, " + want)
	}
	if e.PayloadType != PayloadType {
		return e, s, fmt.Errorf("payload type %.80q, want %s", e.PayloadType, PayloadType)
	}
	if len(e.Signatures) == 0 {
		return e, s, errors.New("envelope without a signature, " + want)
	}
	payload, err := e.DecodeB64Payload()
	if err != nil || json.Unmarshal(payload, &s) != nil || !slices.Contains(statementTypes, s.Type) {
		return e, s, errors.New("malformed payload, " + want)
	}
	return e, s, nil
}

// about reports whether the statement has a subject with this digest ("sha256:...").
func (s statement) about(digest string) bool {
	for _, subject := range s.Subject {
		if sum := subject.Digest["sha256"]; sum != "" && "sha256:"+strings.ToLower(sum) == digest {
			return true
		}
	}
	return false
}

// Verify returns the id of the key in keys that signed a statement about the model's digest.
// Fault: UntrustedArtifact if the model is unsigned or no key verifies its signature.
func (d Definition) Verify(keys Keys) (key string, err error) {
	untrusted := func(format string, args ...any) (string, error) {
		return "", fault.New(fault.UntrustedArtifact, format, args...)
	}
	if !d.Signed() {
		return untrusted("the model is not signed")
	}
	envelope, about, err := read(d.Signature)
	if err != nil {
		return untrusted("the signature cannot be read: %v", err)
	}
	if len(keys) == 0 {
		return untrusted("the deployment trusts no key (SORTIE_MODEL_KEYS)")
	}
	verifiers := make([]dsse.Verifier, len(keys))
	for i, k := range keys {
		verifiers[i] = k
	}
	verifier, err := dsse.NewEnvelopeVerifier(verifiers...)
	if err != nil {
		return untrusted("the signature cannot be verified: %v", err)
	}
	for i := range envelope.Signatures {
		envelope.Signatures[i].KeyID = "" // signing programs use their own key ids
	}
	accepted, err := verifier.Verify(context.Background(), &envelope)
	if err != nil {
		return untrusted("no key that the deployment trusts has signed the model")
	}
	if !about.about(d.Digest) {
		return untrusted("the signature is about another digest than %s", d.Digest)
	}
	return accepted[0].KeyID, nil
}
