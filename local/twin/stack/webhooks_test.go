package stack_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// hookServer is a receiver of events.
type hookServer struct {
	*httptest.Server
	mu      sync.Mutex
	got     map[string]int // requests by event id
	types   map[eventtype.Type]int
	invalid int
	secret  string
	status  int
	arrived chan events.Envelope
	tried   chan struct{} // closed by the first request
}

func receiveEvents(t *testing.T) *hookServer {
	t.Helper()
	h := &hookServer{got: map[string]int{}, types: map[eventtype.Type]int{}, status: http.StatusOK, arrived: make(chan events.Envelope, 10_000), tried: make(chan struct{})}
	h.Server = httptest.NewServer(h)
	h.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	t.Cleanup(h.Close)
	return h
}

func (h *hookServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	e, err := events.Parse(body)
	h.mu.Lock()
	defer h.mu.Unlock()
	if library, wrong := standardwebhooks.NewWebhook(h.secret); h.secret != "" {
		err = errors.Join(err, wrong, library.Verify(body, r.Header))
	}
	if err != nil {
		h.invalid++
	}
	if len(h.got) == 0 {
		close(h.tried)
	}
	h.got[e.EventID]++
	h.types[e.EventType]++
	w.WriteHeader(h.status)
	if h.status == http.StatusOK {
		h.arrived <- e
	}
}

// await waits for an accepted event of a type.
func (h *hookServer) await(t *testing.T, want eventtype.Type) events.Envelope {
	t.Helper()
	for {
		select {
		case e := <-h.arrived:
			if e.EventType == want {
				return e
			}
		case <-time.After(time.Minute):
			t.Fatalf("got no %s within a minute, only %v", want, h.types)
		}
	}
}

var withLoopbackHooks = map[string]string{"SORTIE_HOOK_ALLOW": "127.0.0.1"}

// TestEventsOfAnExportReachItsWebhook runs an export with a webhook. The webhook receives each
// event of the task, signed.
func TestEventsOfAnExportReachItsWebhook(t *testing.T) {
	t.Parallel()
	receiver := receiveEvents(t)
	g := start(t, served{Play: "success", Settings: withLoopbackHooks})
	receiver.mu.Lock() // verify no event before the secret is known
	answer := g.Call(http.MethodPost, "/export/mods", fmt.Sprintf(`{"pi":%q,"webhook":{"url":%q}}`, samples.SampleRoot, receiver.URL))
	accepted := outside.Decode[contract.ExportAccepted](t, answer.Body)
	if accepted.Webhook != nil {
		receiver.secret = accepted.Webhook.Secret
	}
	receiver.mu.Unlock()
	if answer.Status != http.StatusAccepted || accepted.Webhook == nil || accepted.Webhook.Secret == "" {
		t.Fatalf("got %d %s, want 202 with a webhook", answer.Status, answer.Body)
	}
	g.End(g.post(contract.ExportOptions{})) // another task, whose events are not delivered
	last := receiver.await(t, eventtype.Completed)
	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	if receiver.invalid != 0 || last.Job.ID != accepted.TaskID || receiver.types[eventtype.Accepted] != 1 || receiver.types[eventtype.Completed] != 1 {
		t.Errorf("got %v with %d invalid signatures, want the events of %s", receiver.types, receiver.invalid, accepted.TaskID)
	}
}

// TestDeliveriesSurviveAKill kills the system while a receiver fails. The next process delivers
// each event with its id.
func TestDeliveriesSurviveAKill(t *testing.T) {
	t.Parallel()
	receiver, data := receiveEvents(t), t.TempDir()
	receiver.status = http.StatusInternalServerError
	first := spawn(t, served{Data: data, Play: "success", Settings: withLoopbackHooks})
	answer := first.Call(http.MethodPost, "/v1/webhooks", fmt.Sprintf(`{"url":%q,"eventTypes":["job.*"],"ordered":true}`, receiver.URL))
	hook := outside.Decode[contract.WebhookDetail](t, answer.Body)
	if answer.Status != http.StatusCreated {
		t.Fatalf("got %d %s, want 201", answer.Status, answer.Body)
	}
	task := first.post(contract.ExportOptions{})
	first.End(task)
	<-receiver.tried
	first.kill(syscall.SIGKILL)
	receiver.mu.Lock()
	receiver.status, receiver.secret = http.StatusOK, hook.Secret
	receiver.mu.Unlock()
	second := spawn(t, served{Data: data, Play: "success", Settings: withLoopbackHooks})
	e := receiver.await(t, eventtype.Completed)
	published := second.Events(task)
	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	if e.Job.ID != task || receiver.invalid != 0 || len(receiver.got) < len(published) {
		t.Errorf("got %d events of %s with %d invalid signatures, want %d", len(receiver.got), e.Job.ID, receiver.invalid, len(published))
	}
}

// TestHangingReceiversDelayNoOther has webhooks whose receivers never answer, and one whose
// receiver does.
func TestHangingReceiversDelayNoOther(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	var abandoned atomic.Int64 // requests that the sender abandoned
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // reading the request makes its cancellation visible
		select {
		case <-end:
		case <-r.Context().Done():
			abandoned.Add(1)
		}
	}))
	t.Cleanup(func() { close(end); hanging.Close() })
	receiver := receiveEvents(t)
	g := start(t, served{Play: "success", Settings: withLoopbackHooks})
	for n := range 31 {
		url := hanging.URL
		if n == 30 {
			url = receiver.URL
		}
		if answer := g.Call(http.MethodPost, "/v1/webhooks", fmt.Sprintf(`{"url":%q,"eventTypes":["job.*"]}`, url)); answer.Status != http.StatusCreated {
			t.Fatalf("got %d %s, want 201", answer.Status, answer.Body)
		}
	}
	g.End(g.post(contract.ExportOptions{}))
	receiver.await(t, eventtype.Completed)
	if n := abandoned.Load(); n > 0 {
		t.Errorf("got the event after %d hanging requests had ended, want it while all of them hang", n)
	}
	for range 2 {
		g.End(g.post(contract.ExportOptions{}))
	}
	for range 2 {
		receiver.await(t, eventtype.Completed)
	}
}
