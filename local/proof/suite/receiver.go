package suite

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/clients"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// receiver receives the hooks of the suite's jobs. It shares no code with Sortie and verifies
// signatures as shared/base/hook/README.md describes. The path of a hook is /TOPIC/STATUS or
// /TOPIC/STATUS/unsigned; the answer has that status. The path of a webhook is /events/TOPIC,
// that of a notice /notices/TOPIC.
type receiver struct {
	*httptest.Server
	t *testing.T

	mu sync.Mutex
	// calls are the requests of each topic, in order of arrival.
	calls map[string][]hookCall
	// notices are the messages of notify actions, by topic.
	notices map[string][]notice
	// changed are statuses of answers that replace those of the paths, by topic.
	changed map[string]int
	// inboxes are the inboxes of webhooks, by topic.
	inboxes map[string]*inbox
}

// hookCall is a request whose signature is valid.
type hookCall struct {
	contract.HookBody
	// Message is the message id.
	Message string
}

// refusal is the reason in an answer that refuses a run.
const refusal = "frozen until Monday"

// newReceiver starts a receiver. With a certificate it serves HTTPS.
func newReceiver(t *testing.T, certificate *tls.Certificate) *receiver {
	t.Helper()
	h := &receiver{t: t, calls: map[string][]hookCall{}, changed: map[string]int{}, notices: map[string][]notice{}, inboxes: map[string]*inbox{}}
	h.Server = httptest.NewUnstartedServer(h)
	if certificate == nil {
		h.Start()
	} else {
		h.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*certificate}}
		h.StartTLS()
	}
	t.Cleanup(h.Close)
	return h
}

// ServeHTTP implements http.Handler.
func (h *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	topic, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if topic == inboxFolder {
		h.serveEvent(rest, w, r)
		return
	}
	if topic == noticeFolder {
		h.serveNotice(rest, w, r)
		return
	}
	answer, unsigned := strings.CutSuffix(rest, "/unsigned")
	status, err := strconv.Atoi(answer)
	if err != nil {
		h.t.Errorf("got a hook at %s, want /TOPIC/STATUS", r.URL.Path)
		status = http.StatusNotFound
	}
	call, err := h.read(r, !unsigned)
	if err != nil {
		h.t.Errorf("hook at %s: %v", r.URL.Path, err)
	}
	h.mu.Lock()
	h.calls[topic] = append(h.calls[topic], call)
	status = cmp.Or(h.changed[topic], status)
	h.mu.Unlock()
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"detail": "`+refusal+`"}`)
}

func (h *receiver) read(r *http.Request, signed bool) (call hookCall, err error) {
	call.Message = r.Header.Get("Webhook-Id")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return call, err
	}
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		return call, fmt.Errorf("got %s of %q, want POST of application/json", r.Method, r.Header.Get("Content-Type"))
	}
	if err := errors.Join(outside.CheckSchema("HookBody", body), json.Unmarshal(body, &call.HookBody)); err != nil {
		return call, err
	}
	if !signed {
		if r.Header.Get("X-Orchestrator-Signature") != "" || r.Header.Get("Webhook-Signature") != "" {
			return call, errors.New("got a signature without secretRef, want none")
		}
		return call, nil
	}
	return call, verifySignatures(r.Header, body, clock.System{}.Now(), clients.Secrets()[clients.HookSecret])
}

// verifySignatures checks both signatures of a message and its time. Several secrets, the
// oldest first, mean a rotation.
func verifySignatures(header http.Header, body []byte, now time.Time, secrets ...string) error {
	timestamp := header.Get("Webhook-Timestamp")
	content := append([]byte(header.Get("Webhook-Id")+"."+timestamp+"."), body...)
	var older string
	var all []string
	for i, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			return err
		}
		sum := func(text []byte) []byte {
			mac := hmac.New(sha256.New, key)
			mac.Write(text)
			return mac.Sum(nil)
		}
		if i == 0 {
			older = "sha256=" + hex.EncodeToString(sum(body))
		}
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(sum(content)))
	}
	for name, want := range map[string]string{
		"X-Orchestrator-Signature": older, "X-Orchestrator-Timestamp": timestamp, "Webhook-Signature": strings.Join(all, " "),
	} {
		if got := header.Get(name); !hmac.Equal([]byte(got), []byte(want)) {
			return fmt.Errorf("got %s %q, want %q", name, got, want)
		}
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if age := now.Sub(time.Unix(seconds, 0)); err != nil || header.Get("Webhook-Id") == "" || age.Abs() > time.Minute {
		return fmt.Errorf("got message %q of %q, want an id and a current time", header.Get("Webhook-Id"), timestamp)
	}
	return nil
}

// topic returns the unique topic of the test's hooks with this name.
func (c *Case) topic(name string) string { return c.Batch(name) }

// hook returns a hook with the topic and the answer status. members are added to it.
func (c *Case) hook(topic string, status int, members ...document) document {
	h := document{"url": c.hooks.URL + "/" + path.Join(c.topic(topic), strconv.Itoa(status)), "secretRef": clients.HookSecret}
	for _, each := range members {
		maps.Copy(h, each)
	}
	return h
}

// answer changes the status of the further answers to the hooks of a topic.
func (c *Case) answer(topic string, status int) {
	c.hooks.mu.Lock()
	defer c.hooks.mu.Unlock()
	c.hooks.changed[c.topic(topic)] = status
}

// webhook returns an action that calls a hook.
func (c *Case) webhook(topic string, status int) document {
	return document{"type": "webhook", "parameters": c.hook(topic, status)}
}

// received waits until the topic has n calls and returns all calls.
func (c *Case) received(topic string, n int) (calls []hookCall) {
	c.T.Helper()
	c.eventually(fmt.Sprintf("%d calls of the hook %s", n, topic), func() bool {
		c.hooks.mu.Lock()
		defer c.hooks.mu.Unlock()
		calls = append([]hookCall(nil), c.hooks.calls[c.topic(topic)]...)
		return len(calls) >= n
	})
	return calls
}
