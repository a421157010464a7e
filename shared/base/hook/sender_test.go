package hook_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/base/limit"
)

// send sends a message once to a path of the receiver.
func (r *receiver) send(m hook.Message) hook.Reply {
	r.Helper()
	if !strings.Contains(m.URL, "://") {
		m.URL = r.URL + m.URL
	}
	reply, err := r.sender.Send(r.Context(), m)
	if err != nil {
		r.Fatal(err)
	}
	return reply
}

func TestMessageIsSentOnce(t *testing.T) {
	t.Parallel()
	for code, after := range map[int]string{200: "", 204: "", 302: "", 400: "", 410: "", 429: "90", 500: "", 503: "Sun, 01 Mar 2026 09:00:00 GMT"} {
		r := receive(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/again")
			w.Header().Set("Retry-After", after)
			status(code, "a\x1bb")(0, w, nil)
		})
		want := hook.Reply{Status: code, Body: "a b", RetryAfter: map[int]time.Duration{429: 90 * time.Second, 503: time.Hour}[code]}
		if code == 204 {
			want.Body = ""
		}
		if got := r.send(hook.Message{URL: "/"}); got != want || len(r.requests) != 1 {
			t.Errorf("got %+v after %d requests, want %+v after 1", got, len(r.requests), want)
		}
	}
	long := receive(t, status(200, strings.Repeat("x", 100<<10)))
	if got := long.send(hook.Message{URL: "/"}); len(got.Body) != limit.HookBody || got.Status != 200 {
		t.Errorf("got %d bytes with status %d, want %d with 200", len(got.Body), got.Status, limit.HookBody)
	}
}

func TestSendWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	closed := receive(t, status(204, ""))
	closed.Close()
	cut := receive(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = connection.Close()
	})
	unknown := receive(t, status(204, ""))
	for name, row := range map[string]struct {
		on      *receiver
		url     string
		problem string
	}{
		"refused":      {closed, closed.URL + "/s3cret", "connection to 127.0.0.1 failed"},
		"cut":          {cut, cut.URL + "/s3cret", "connection to 127.0.0.1 failed"},
		"unknown name": {unknown, "https://hooks.example.org/s3cret", "host hooks.example.org has no address"},
		"certificate":  {unknown, unknown.at("localhost") + "/s3cret", `host "localhost": want a name of the public Internet`},
	} {
		got := row.on.send(hook.Message{URL: row.url})
		if got.Status != 0 || name != "certificate" && got.Problem != row.problem || strings.Contains(got.Problem, "s3cret") || got.Problem == "" {
			t.Errorf("%s: got %+v, want %q", name, got, row.problem)
		}
	}
}

// TestSendEndsInTime blocks before the response and during it.
func TestSendEndsInTime(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{false, true} {
		arrived := make(chan struct{})
		r := receive(t, func(_ int, w http.ResponseWriter, request *http.Request) {
			if early {
				_ = http.NewResponseController(w).Flush()
			}
			close(arrived)
			<-request.Context().Done()
		})
		go func() {
			<-arrived
			r.clock.Advance(15 * time.Second)
		}()
		want := hook.Reply{Problem: "no answer from 127.0.0.1 within 15s", TimedOut: true, Latency: 15 * time.Second}
		if got := r.send(hook.Message{URL: "/", Timeout: 15 * time.Second}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := receive(t, func(_ int, _ http.ResponseWriter, request *http.Request) {
		cancel()
		<-request.Context().Done()
	})
	if got, err := r.sender.Send(ctx, hook.Message{URL: r.URL}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %+v, %v, want the error of the context", got, err)
	}
}

// TestConnectionIsReused sends several messages over one connection, and over a new one after
// the receiver has closed it.
func TestConnectionIsReused(t *testing.T) {
	t.Parallel()
	r := receive(t, status(200, "ok"))
	for n := range 5 {
		if got := r.send(hook.Message{URL: "/"}); got.Status != 200 {
			t.Fatalf("message %d: got %+v, want 200", n, got)
		}
	}
	first := r.requests[0].RemoteAddr
	for _, request := range r.requests {
		if request.RemoteAddr != first {
			t.Errorf("got connections from %s and %s, want one", first, request.RemoteAddr)
		}
	}
	r.CloseClientConnections()
	if got := r.send(hook.Message{URL: "/"}); got.Status != 200 && got.Problem == "" {
		t.Errorf("got %+v after the connection was closed, want an answer or a problem", got)
	}
}

// TestSendChecksEachAddress resolves public names to addresses that are not permitted. No
// request may be sent.
func TestSendChecksEachAddress(t *testing.T) {
	t.Parallel()
	r := receive(t, status(204, ""), "10.9.9.9")
	for _, address := range []string{"127.0.0.1", "::1", "10.0.0.1", "169.254.169.254", "fd00:ec2::254", "100.64.0.1", "64:ff9b::7f00:1", "0.0.0.0"} {
		r.names.addresses = func(int) []string { return []string{address} }
		got := r.send(hook.Message{URL: "https://hooks.example.org/"})
		if !strings.Contains(got.Problem, "not public") || len(r.requests) != 0 {
			t.Errorf("%s: got %+v after %d requests, want it refused", address, got, len(r.requests))
		}
	}
	for _, url := range []string{"http://hooks.example.org/", "https://127.0.0.1/", "http://127.0.0.1:1/", "https://hooks.example.org:8443/", "https://hooks.example.org/#x"} {
		if got := r.send(hook.Message{URL: url}); got.Problem == "" || got.Status != 0 {
			t.Errorf("%s: got %+v, want it refused", url, got)
		}
	}
}

func secretOf(text string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(text))
}

// TestRotatedSignatures verifies a message with two keys, using the Standard Webhooks library
// (EE-5.5). Other keys and messages must be refused.
func TestRotatedSignatures(t *testing.T) {
	t.Parallel()
	older, newer := secretOf("0123456789abcdef0123456789abcdef"), secretOf("fedcba9876543210fedcba9876543210")
	first, _ := hook.ParseKey(older)
	second, err := hook.ParseKey(newer)
	if err != nil {
		t.Fatal(err)
	}
	const id, body = "urn:orch:event:01KJM74XY0H3ZZ5T605S8SXKKV", `{"eventType":"job.completed"}`
	now := time.Now()
	signed := func(keys ...hook.Key) http.Header {
		header := http.Header{}
		keys[0].Sign(header, id, now, []byte(body), keys[1:]...)
		return header
	}
	alone, rotated := signed(first), signed(first, second)
	if got, want := rotated.Get(hook.HeaderSignature), alone.Get(hook.HeaderSignature); got != want {
		t.Errorf("got %s, want the signature of the older key, %s", got, want)
	}
	if got := strings.Fields(rotated.Get(hook.HeaderWebhookSignature)); len(got) != 2 || got[0] != alone.Get(hook.HeaderWebhookSignature) {
		t.Errorf("got %s, want a signature of each key", got)
	}
	changed := func(name, value string) http.Header {
		header := rotated.Clone()
		header.Set(name, value)
		return header
	}
	raw := rotated.Get(hook.HeaderWebhookSignature)
	for name, row := range map[string]struct {
		secret string
		header http.Header
		body   string
		ok     bool
	}{
		"older key":             {older, rotated, body, true},
		"newer key":             {newer, rotated, body, true},
		"newer key before":      {newer, alone, body, false},
		"another key":           {secretOf("another key of thirty-two bytes!"), rotated, body, false},
		"changed body":          {older, rotated, strings.Replace(body, "completed", "failed", 1), false},
		"longer body":           {older, rotated, body + " ", false},
		"empty body":            {older, rotated, "", false},
		"another id":            {older, changed(hook.HeaderWebhookID, id+"X"), body, false},
		"another time":          {older, changed(hook.HeaderWebhookTimestamp, "1"), body, false},
		"no signature":          {older, changed(hook.HeaderWebhookSignature, ""), body, false},
		"signature of nothing":  {older, changed(hook.HeaderWebhookSignature, "v1,"), body, false},
		"version of no key":     {older, changed(hook.HeaderWebhookSignature, strings.ReplaceAll(raw, "v1,", "v0,")), body, false},
		"hexadecimal signature": {older, changed(hook.HeaderWebhookSignature, "v1,"+strings.TrimPrefix(alone.Get(hook.HeaderSignature), "sha256=")), body, false},
		"cut signature":         {older, changed(hook.HeaderWebhookSignature, raw[:20]), body, false},
		"other header":          {older, changed(hook.HeaderWebhookSignature, alone.Get(hook.HeaderSignature)), body, false},
	} {
		receiver, err := standardwebhooks.NewWebhook(row.secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := receiver.Verify([]byte(row.body), row.header); (err == nil) != row.ok {
			t.Errorf("%s: got %v, want it accepted: %t", name, err, row.ok)
		}
	}
	old := http.Header{}
	first.Sign(old, id, now.Add(-10*time.Minute), []byte(body))
	receiver, _ := standardwebhooks.NewWebhook(older)
	if err := receiver.Verify([]byte(body), old); err == nil {
		t.Error("got a message of ten minutes ago accepted, want it refused")
	}
}
