package hook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of every request (EE-5). The signatures are absent without a key.
// Webhook-Signature has one for each key, with a space between two.
const (
	HeaderTimestamp        = "X-Orchestrator-Timestamp" // seconds since 1970
	HeaderSignature        = "X-Orchestrator-Signature" // sha256= and the HMAC of the body in hexadecimal
	HeaderWebhookID        = "Webhook-Id"
	HeaderWebhookTimestamp = "Webhook-Timestamp"
	HeaderWebhookSignature = "Webhook-Signature" // v1, and the HMAC of ID.TIMESTAMP.BODY in base64
)

const (
	secretPrefix = "whsec_"
	keyBytes     = 32
)

// Key is the decoded secret of a receiver. The zero Key signs nothing.
type Key struct{ bytes []byte }

// ParseKey decodes a secret: "whsec_" and the base64 of 32 bytes. An empty text is the
// zero Key. The error does not contain the text.
func ParseKey(text string) (Key, error) {
	if text == "" {
		return Key{}, nil
	}
	encoded, found := strings.CutPrefix(strings.TrimSpace(text), secretPrefix)
	bytes, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !found || err != nil || len(bytes) != keyBytes {
		return Key{}, errors.New("malformed secret of a hook, want whsec_ and the base64 of 32 bytes")
	}
	return Key{bytes}, nil
}

// Sign sets the headers of a request with this body that is sent at now. id is the same
// for each try of a message and contains no dot. During a rotation newer has the keys that
// replace k: Webhook-Signature has a signature of each, X-Orchestrator-Signature that of k.
func (k Key) Sign(header http.Header, id string, now time.Time, body []byte, newer ...Key) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	header.Set(HeaderTimestamp, timestamp)
	header.Set(HeaderWebhookTimestamp, timestamp)
	header.Set(HeaderWebhookID, id)
	if len(k.bytes) == 0 {
		return
	}
	header.Set(HeaderSignature, "sha256="+hex.EncodeToString(k.sum(string(body))))
	var signatures []string
	for _, each := range append([]Key{k}, newer...) {
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(each.sum(id+"."+timestamp+"."+string(body))))
	}
	header.Set(HeaderWebhookSignature, strings.Join(signatures, " "))
}

// NewSecret returns the secret of 32 bytes, which the caller draws at random.
func NewSecret(bytes [keyBytes]byte) string {
	return secretPrefix + base64.StdEncoding.EncodeToString(bytes[:])
}

func (k Key) sum(text string) []byte {
	mac := hmac.New(sha256.New, k.bytes)
	mac.Write([]byte(text)) // a hash never returns an error
	return mac.Sum(nil)
}
