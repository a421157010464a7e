package client

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

const delivered = `{"schemaVersion": "orch.event.v1", "eventId": "urn:orch:event:01KA0000000000000000000000", "eventType": "job.completed"}`

func signed(secret, id string, at time.Time, body string) http.Header {
	key, err := base64.StdEncoding.DecodeString(secret)
	if err != nil {
		panic(err)
	}
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + stamp + "." + body))
	header := http.Header{}
	header.Set("Webhook-Id", id)
	header.Set("Webhook-Timestamp", stamp)
	header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return header
}

func TestWebhooksAreVerified(t *testing.T) {
	t.Parallel()
	now := clock.NewVirtual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	key, other := base64.StdEncoding.EncodeToString([]byte("the key")), base64.StdEncoding.EncodeToString([]byte("another"))
	for name, row := range map[string]struct {
		change  func(http.Header)
		secrets []string
		body    string
		valid   bool
	}{
		"as sent":                  {func(http.Header) {}, []string{"whsec_" + key}, delivered, true},
		"without the prefix":       {func(http.Header) {}, []string{key}, delivered, true},
		"the second secret":        {func(http.Header) {}, []string{other, key}, delivered, true},
		"the second signature":     {func(h http.Header) { h.Set("Webhook-Signature", "v2,x v1,AAAA "+h.Get("Webhook-Signature")) }, []string{key}, delivered, true},
		"another secret":           {func(http.Header) {}, []string{other}, delivered, false},
		"no secret":                {func(http.Header) {}, nil, delivered, false},
		"an empty secret":          {func(http.Header) {}, []string{""}, delivered, false},
		"a secret that is no text": {func(http.Header) {}, []string{"%"}, delivered, false},
		"another body":             {func(http.Header) {}, []string{key}, delivered + " ", false},
		"another id":               {func(h http.Header) { h.Set("Webhook-Id", "2") }, []string{key}, delivered, false},
		"no signature":             {func(h http.Header) { h.Del("Webhook-Signature") }, []string{key}, delivered, false},
		"an old time":              {func(h http.Header) { h.Set("Webhook-Timestamp", "1") }, []string{key}, delivered, false},
		"a time that is no number": {func(h http.Header) { h.Set("Webhook-Timestamp", "-1") }, []string{key}, delivered, false},
	} {
		header := signed(key, "1", now.Now(), delivered)
		row.change(header)
		event, err := Verifier{Secrets: row.secrets, Clock: now}.Verify(header, []byte(row.body))
		if (err == nil) != row.valid || err != nil && !errors.Is(err, ErrNotVerified) || row.valid && event.EventType != "job.completed" {
			t.Errorf("%s: got %v, %v, want valid %v", name, event, err, row.valid)
		}
	}
	old := signed(key, "1", now.Now().Add(-6*time.Minute), delivered)
	if _, err := (Verifier{Secrets: []string{key}, Clock: now}).Verify(old, []byte(delivered)); err == nil {
		t.Error("six minutes: got no error")
	}
}

func TestWebhookRequestIsRead(t *testing.T) {
	t.Parallel()
	key := base64.StdEncoding.EncodeToString([]byte("the key"))
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader([]byte(delivered)))
	r.Header = signed(key, "1", time.Now(), delivered)
	if event, err := (Verifier{Secrets: []string{key}}).Read(r); err != nil || event.EventType != "job.completed" {
		t.Errorf("got %v (%v), want the event", event, err)
	}
}
