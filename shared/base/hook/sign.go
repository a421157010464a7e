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

// The headers of every request (EE-5). Without a key there are no signatures. Webhook-Signature
// has one signature for each key, separated by spaces.
const (
	HeaderTimestamp        = "X-Orchestrator-Timestamp" // Unix time in seconds
	HeaderSignature        = "X-Orchestrator-Signature" // sha256= and the hexadecimal HMAC of the body
	HeaderWebhookID        = "Webhook-Id"
	HeaderWebhookTimestamp = "Webhook-Timestamp"
	HeaderWebhookSignature = "Webhook-Signature" // v1, and the base64 HMAC of ID.TIMESTAMP.BODY
)

const (
	secretPrefix = "whsec_"
	keyBytes     = 32
)

// Key is the decoded secret of a receiver. The zero Key does not sign.
type Key struct{ bytes []byte }

// ParseKey decodes a secret: "whsec_" and the base64 of 32 bytes. An empty text is the zero
// Key. The error does not contain the text.
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

// Sign sets the headers of a request with the body, sent at the time now. id is the same for
// each try of a message and must not contain a dot. newer are the keys that replace k during a
// rotation: Webhook-Signature has a signature of each key, X-Orchestrator-Signature only that
// of k.
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

// NewSecret returns the secret for 32 random bytes.
func NewSecret(bytes [keyBytes]byte) string {
	return secretPrefix + base64.StdEncoding.EncodeToString(bytes[:])
}

func (k Key) sum(text string) []byte {
	mac := hmac.New(sha256.New, k.bytes)
	mac.Write([]byte(text)) // Write of a hash never returns an error
	return mac.Sum(nil)
}
