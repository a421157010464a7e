package stream_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/api/apicheck"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// socket is an open WebSocket.
type socket struct {
	*websocket.Conn

	document *apicheck.Document
}

// document is loaded once.
var document = sync.OnceValues(func() (*apicheck.Document, error) { return apicheck.Load(contract.OpenAPI()) })

func (b *bench) dial(t *testing.T, query string, headers ...string) socket {
	t.Helper()
	document, err := document()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	header := http.Header{"Authorization": {"Bearer " + token}}
	for i := 0; i < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	conn, _, err := websocket.Dial(ctx, b.URL+"/v1/events/ws"+query, &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	conn.SetReadLimit(1 << 20)
	return socket{conn, document}
}

// message reads a message and compares it with its schema.
func (s socket) message(t *testing.T) (m contract.StreamMessage) {
	t.Helper()
	kind, text, err := s.Read(t.Context())
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err == nil {
		err = s.document.CheckSchema("StreamMessage", text)
	}
	if err != nil || kind != websocket.MessageText {
		t.Fatalf("got %v %s, %v, want a message", kind, text, err)
	}
	return m
}

func TestSocketSendsTheSameStream(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	b.add(t, eventtype.Accepted, eventtype.Failed)
	s := b.dial(t, "?after="+b.at(1))
	if m := s.message(t); m.Type != contract.MessageCursor || m.ID != b.at(1) || m.RetryMS < 1000 || m.RetryMS > 5000 {
		t.Errorf("got the first message %+v, want the cursor and a retry", m)
	}
	m := s.message(t)
	e, err := events.Parse(m.Event)
	if err != nil || m.Type != contract.MessageEvent || m.ID != b.at(2) || e.EventType != eventtype.Failed || e.Notifier.Delivery != events.DeliveryPlain {
		t.Errorf("got %+v, %v, want the second event", m, err)
	}
	b.Clock.Advance(stream.CursorInterval)
	if got, want := s.message(t), (contract.StreamMessage{Type: contract.MessageCursor, ID: b.at(2)}); !cmp.Equal(got, want) {
		t.Errorf("got %+v without events, want %+v", got, want)
	}
	b.add(t, eventtype.Completed)
	if m := s.message(t); m.Type != contract.MessageEvent || m.ID != b.at(3) {
		t.Errorf("got %+v, want the third event as it comes", m)
	}
	closed := make(chan error, 1)
	go func() { closed <- b.streams.Close(context.WithoutCancel(t.Context())) }()
	if m := s.message(t); m.Type != contract.MessageEnd || m.RetryMS < 1000 || m.RetryMS > 5000 || m.ID != b.at(3) {
		t.Errorf("got %+v at the shutdown, want the end with a retry", m)
	}
	if _, _, err := s.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("got %v, want the close code 1001", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	late := b.dial(t, "")
	if got, want := late.message(t), (contract.StreamMessage{Type: contract.MessageEnd, ID: b.at(3), RetryMS: 5000}); !cmp.Equal(got, want) {
		t.Errorf("got %+v after the shutdown, want %+v", got, want)
	}
}

func TestSocketBeginsWithAGap(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	b.add(t, eventtype.Accepted)
	s := b.dial(t, "", "Last-Event-ID", "other-7")
	m := s.message(t)
	want := contract.Gap{EventType: contract.StreamGap, Asked: "other-7", Oldest: b.at(1), Newest: b.at(1)}
	if m.Type != contract.MessageGap || m.Gap == nil || *m.Gap != want || m.ID != b.at(0) {
		t.Errorf("got %+v, want the gap %+v", m, want)
	}
	if m := s.message(t); m.ID != b.at(1) || m.Type != contract.MessageEvent {
		t.Errorf("got %+v, want the oldest event", m)
	}
}

func TestSocketTakesATicketOfAnotherOrigin(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	b.add(t, eventtype.Accepted)
	var ticket contract.Ticket
	answer := b.Call(t, http.MethodPost, "/v1/events/tickets", "", "Authorization", "Bearer "+token)
	if err := json.Unmarshal([]byte(answer.Body), &ticket); err != nil {
		t.Fatal(err)
	}
	s := b.dial(t, "?after=0&ticket="+ticket.Ticket, "Authorization", "", "Origin", "https://page.example")
	s.message(t)
	if m := s.message(t); m.ID != b.at(1) {
		t.Errorf("got %+v, want the event", m)
	}
}

// TestSocketNoticesItsReader checks that the server detects that a reader has disconnected, and
// that it refuses data of readers.
func TestSocketNoticesItsReader(t *testing.T) {
	t.Parallel()
	config := settings
	config.Readers = 1
	b := setup(t, config)
	s := b.dial(t, "")
	s.message(t)
	if err := s.Write(t.Context(), websocket.MessageText, []byte("data")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("got %v for data of a reader, want the close code 1008", err)
	}
	for i := 0; ; i++ {
		again := b.dial(t, "")
		if m := again.message(t); m.Type != contract.MessageEnd {
			break
		}
		if i == 1000 {
			t.Fatal("got no seat after the first reader left, want one")
		}
	}
}

func TestOtherRequestsAreNoHandshakes(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	for name, headers := range map[string][]string{
		"no upgrade":      nil,
		"another upgrade": {"Connection", "Upgrade", "Upgrade", "h2c"},
		"another version": {"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "8", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="},
		"no key":          {"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13"},
		"a short key":     {"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AA=="},
	} {
		answer := b.Call(t, http.MethodGet, "/v1/events/ws", "", append(headers, "Authorization", "Bearer "+token)...)
		if answer.Status != http.StatusUpgradeRequired || answer.Header.Get("Upgrade") != "websocket" || !strings.Contains(answer.Body, "UPGRADE_REQUIRED") {
			t.Errorf("%s: got %d %s, want 426", name, answer.Status, answer.Body)
		}
	}
}
