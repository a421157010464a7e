package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/sdk/go/api"
)

// ErrNotVerified means that a delivery of a webhook is not one of the server with the secret.
var ErrNotVerified = errors.New("webhook not verified")

const (
	webhookTolerance = 5 * time.Minute
	mostWebhook      = 4 << 20
)

// Verifier verifies deliveries of webhooks (Standard Webhooks).
type Verifier struct {
	// Secrets are the secrets of the webhook. Several permit a rotation.
	Secrets []string
	// Tolerance is the greatest difference of the clocks; 0 means 5 min.
	Tolerance time.Duration
	// Clock is for tests; nil means the clock of the host.
	Clock clock.Clock
}

// VerifyWebhook verifies a delivery with the default tolerance and returns its event.
//
// Delivery is at least once: ignore an event whose EventID was seen.
func VerifyWebhook(header http.Header, body []byte, secrets ...string) (*api.Event, error) {
	return Verifier{Secrets: secrets}.Verify(header, body)
}

// Read reads the body of a request, verifies the delivery, and returns its event.
func (v Verifier) Read(r *http.Request) (*api.Event, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, mostWebhook))
	if err != nil {
		return nil, fmt.Errorf("%w: cannot read the body: %w", ErrNotVerified, err)
	}
	return v.Verify(r.Header, body)
}

// Verify verifies the signature and the age of a delivery and returns its event. body is the
// body as it was received. All errors are ErrNotVerified.
func (v Verifier) Verify(header http.Header, body []byte) (*api.Event, error) {
	id, stamp, signatures := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp"), header.Get("Webhook-Signature")
	if id == "" || stamp == "" || signatures == "" {
		return nil, fmt.Errorf("%w: no Webhook-Id, Webhook-Timestamp or Webhook-Signature", ErrNotVerified)
	}
	seconds, err := strconv.ParseUint(stamp, 10, 50)
	if err != nil || !v.isRecent(time.Unix(int64(seconds), 0)) { //nolint:gosec // 50 bits
		return nil, fmt.Errorf("%w: the Webhook-Timestamp is too old or too new", ErrNotVerified)
	}
	signed, err := v.isSigned(id+"."+stamp+".", body, signatures)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotVerified, err)
	}
	if !signed {
		return nil, fmt.Errorf("%w: no signature is valid", ErrNotVerified)
	}
	event := new(api.Event)
	if json.Unmarshal(body, event) != nil || event.EventID == "" {
		return nil, fmt.Errorf("%w: the body is no event", ErrNotVerified)
	}
	return event, nil
}

func (v Verifier) isRecent(at time.Time) bool {
	var now clock.Clock = clock.System{}
	if v.Clock != nil {
		now = v.Clock
	}
	tolerance := v.Tolerance
	if tolerance == 0 {
		tolerance = webhookTolerance
	}
	return now.Now().Sub(at).Abs() <= tolerance
}

func (v Verifier) isSigned(prefix string, body []byte, signatures string) (bool, error) {
	if len(v.Secrets) == 0 {
		return false, errors.New("there is no secret")
	}
	for _, secret := range v.Secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(key) == 0 {
			return false, errors.New("a secret is not base64")
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(prefix))
		mac.Write(body)
		want := mac.Sum(nil) // one for each secret: a header with many signatures costs no more
		for one := range strings.FieldsSeq(signatures) {
			text, ok := strings.CutPrefix(one, "v1,")
			got, err := base64.StdEncoding.DecodeString(text)
			if ok && err == nil && hmac.Equal(got, want) {
				return true, nil
			}
		}
	}
	return false, nil
}
