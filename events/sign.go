package events

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/gowebpki/jcs"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// PayloadType is the payload type of a signed event.
const PayloadType = "application/vnd.orch.event.v1+json"

// Sign returns the DSSE envelope of the exact bytes of an event.
func Sign(ctx context.Context, payload []byte, key Key) ([]byte, error) {
	signer, err := dsse.NewEnvelopeSigner(key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign an event: %w", err)
	}
	signed, err := signer.SignPayload(ctx, PayloadType, payload)
	if err != nil {
		return nil, fmt.Errorf("cannot sign an event: %w", err)
	}
	return json.Marshal(signed)
}

// Open returns the event in a DSSE envelope and its exact bytes. It returns an error unless the
// envelope is signed by one of the keys and has the payload type of events.
func (k Keys) Open(ctx context.Context, document []byte) (e Envelope, payload []byte, err error) {
	var signed dsse.Envelope
	if err := json.Unmarshal(document, &signed); err != nil {
		return Envelope{}, nil, fmt.Errorf("malformed DSSE envelope: %w", err)
	}
	if signed.PayloadType != PayloadType {
		return Envelope{}, nil, fmt.Errorf("unknown payload type %q, want %s", signed.PayloadType, PayloadType)
	}
	var known []dsse.Verifier
	for _, s := range signed.Signatures {
		if key, ok := k[s.KeyID]; ok {
			known = append(known, key)
		}
	}
	if len(known) == 0 {
		return Envelope{}, nil, fmt.Errorf("no signature by a known key, got %s", keyIDs(signed.Signatures))
	}
	verifier, err := dsse.NewEnvelopeVerifier(known...)
	if err != nil {
		return Envelope{}, nil, fmt.Errorf("cannot verify an event: %w", err)
	}
	if _, payload, err = verifier.VerifyAndDecode(ctx, &signed); err != nil {
		return Envelope{}, nil, fmt.Errorf("the signature of the event does not match: %w", err)
	}
	e, err = Parse(payload)
	return e, payload, err
}

// bare is the start of an event as this package encodes it.
var bare = []byte(`{"schemaVersion":`)

// Bare reports whether a record of a stream is an event without a DSSE envelope. Such an event
// is signed when it is read: the signature of a key is the same each time.
func Bare(record []byte) bool { return bytes.HasPrefix(record, bare) }

// Signed returns a record of a stream as a DSSE envelope. It signs an event without one.
func Signed(ctx context.Context, record []byte, signing func(context.Context) (Key, error)) ([]byte, error) {
	if !Bare(record) {
		return record, nil
	}
	key, err := signing(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the key of events: %w", err)
	}
	return Sign(ctx, record, key)
}

// Unverified returns the event in a record of a stream and its exact bytes. It does not check
// the signatures of its DSSE envelope.
func Unverified(document []byte) (e Envelope, payload []byte, err error) {
	if payload, err = Payload(document); err != nil {
		return Envelope{}, nil, err
	}
	e, err = Parse(payload)
	return e, payload, err
}

// Payload returns the exact bytes of the event in a record of a stream. It checks neither the
// signatures nor the event.
func Payload(document []byte) (payload []byte, err error) {
	if Bare(document) {
		return document, nil
	}
	var signed dsse.Envelope
	if err := json.Unmarshal(document, &signed); err != nil {
		return nil, fmt.Errorf("malformed DSSE envelope: %w", err)
	}
	if payload, err = signed.DecodeB64Payload(); err != nil {
		return nil, fmt.Errorf("malformed payload of a DSSE envelope: %w", err)
	}
	return payload, nil
}

func keyIDs(signatures []dsse.Signature) string {
	if len(signatures) == 0 {
		return "none"
	}
	var ids bytes.Buffer
	for i, s := range signatures {
		if i > 0 {
			ids.WriteString(", ")
		}
		fmt.Fprintf(&ids, "%q", s.KeyID)
	}
	return ids.String()
}

// Canonical returns the part of an event that is the same in all deliveries: its payload in
// canonical JSON (RFC 8785), without notifier.
func Canonical(payload []byte) ([]byte, error) {
	if canonical, ok := plainCanonical(payload, "notifier"); ok && payload[0] == '{' {
		return canonical, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(payload, &fields); err != nil {
		return nil, fmt.Errorf("malformed event: %w", err)
	}
	delete(fields, "notifier")
	rest, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("malformed event: %w", err)
	}
	canonical, err := jcs.Transform(rest)
	if err != nil {
		return nil, fmt.Errorf("cannot write an event as canonical JSON: %w", err)
	}
	return canonical, nil
}
