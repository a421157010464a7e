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
// for each try of a message and contains no dot.
func (k Key) Sign(header http.Header, id string, now time.Time, body []byte) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	header.Set(HeaderTimestamp, timestamp)
	header.Set(HeaderWebhookTimestamp, timestamp)
	header.Set(HeaderWebhookID, id)
	if len(k.bytes) == 0 {
		return
	}
	header.Set(HeaderSignature, "sha256="+hex.EncodeToString(k.sum(string(body))))
	header.Set(HeaderWebhookSignature, "v1,"+base64.StdEncoding.EncodeToString(k.sum(id+"."+timestamp+"."+string(body))))
}

func (k Key) sum(text string) []byte {
	mac := hmac.New(sha256.New, k.bytes)
	mac.Write([]byte(text)) // a hash never returns an error
	return mac.Sum(nil)
}
