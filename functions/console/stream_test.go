package console_test

import (
	"bufio"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events/eventtype"
)

// follow opens a stream of the browser.
func (b *browser) follow(path string, headers ...string) *bufio.Reader {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.URL+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := b.Client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		b.t.Fatalf("%s: got %d, want 200", path, response.StatusCode)
	}
	return bufio.NewReader(response.Body)
}

// message reads a message with data, and returns its fields.
func message(t *testing.T, from *bufio.Reader) map[string]string {
	t.Helper()
	fields := map[string]string{}
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			t.Fatalf("got %v, want a message", err)
		}
		if line == "\n" {
			if fields["data"] != "" {
				return fields
			}
			fields = map[string]string{}
			continue
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		fields[name] = value
	}
}

func TestStreamReportsChangesWithoutTheirContent(t *testing.T) {
	t.Parallel()
	h, events := setupEvents(t)
	b := h.signedIn(t, ownerToken)
	s := b.follow("/console/stream")
	if line, err := s.ReadString('\n'); err != nil || !strings.HasPrefix(line, "retry: ") {
		t.Fatalf("got %q, %v, want the delay before the next connection", line, err)
	}
	add(t, events, eventtype.Accepted, eventtype.Failed)
	first := message(t, s)
	if first["event"] != "change" || first["id"] == "" || !strings.HasPrefix(first["data"], `{"type":"job.accepted","runId":"`) || strings.Contains(first["data"], "payloadDigest") {
		t.Errorf("got %v, want the type and the run", first)
	}
	message(t, s)
	again := b.follow("/console/stream", "Last-Event-ID", first["id"])
	if next := message(t, again); !strings.Contains(next["data"], "job.failed") {
		t.Errorf("got %v after a reconnection, want the event after the first", next)
	}
}

// TestStreamsEndWithTheSession signs out, revokes the token, and lets the session expire, while
// streams are open.
func TestStreamsEndWithTheSession(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*home, *browser){
		"sign-out":   func(_ *home, b *browser) { b.post("/console/sign-out") },
		"revocation": func(h *home, b *browser) { h.tokens.revoke(b.t, "owner") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := setupEvents(t)
			id := h.Accept(t)
			h.Start(t, id)
			b := h.signedIn(t, ownerToken)
			b.page("/console/runs")
			streams := map[string]*bufio.Reader{"events": b.follow("/console/stream"), "log": b.follow("/console/runs/" + id + "/log?attempt=1&after=0")}
			end(h, b)
			h.Clock.Advance(2 * time.Second)
			for what, s := range streams {
				if rest, err := io.ReadAll(s); strings.Contains(string(rest), "data:") {
					t.Errorf("%s: got %q, %v, want the end of the stream", what, rest, err)
				}
			}
		})
	}
}

func TestReaderWithoutEventsHasNoLiveChange(t *testing.T) {
	t.Parallel()
	h, _ := setupEvents(t)
	b := h.signedIn(t, readerToken)
	if text := b.page("/console/runs"); strings.Contains(text, "data-live=") {
		t.Error("got a live page for a reader without events:read")
	}
	if answer := b.get("/console/stream"); answer.Status != http.StatusForbidden {
		t.Errorf("got %d, want 403", answer.Status)
	}
	if text := h.signedIn(t, ownerToken).page("/console/runs"); !strings.Contains(text, `data-live=""`) {
		t.Error("got no live page for the owner")
	}
}

// TestStreamWithoutASession ends: a redirect to the sign-in is an error in the browser's console.
func TestStreamWithoutASession(t *testing.T) {
	t.Parallel()
	if answer := setup(t).browser(t).get("/console/stream"); answer.Status != http.StatusNoContent || answer.Body != "" {
		t.Errorf("got %d %q, want 204", answer.Status, answer.Body)
	}
}

func TestLogIsFollowedAfterALine(t *testing.T) {
	t.Parallel()
	h := setup(t)
	id := h.Accept(t)
	h.Start(t, id)
	h.Write(t, id, "one\ntwo\n<b>three</b>\nno end yet")
	b := h.signedIn(t, ownerToken)
	b.page("/console/runs/"+id, `data-follow="../runs/`+id+`/log?attempt=1"`, `id="L3"`)
	s := b.follow("/console/runs/" + id + "/log?attempt=1&after=1")
	for at, ok := h.Clock.Next(); !ok || at.Sub(h.Clock.Now()) > time.Second; at, ok = h.Clock.Next() {
		runtime.Gosched() // until the follower waits for its next poll
	}
	h.Clock.Advance(10 * time.Second) // the output of a machine appears after some seconds
	for _, want := range []string{`<li id="L2">`, `<li id="L3">`} {
		line, err := s.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, want) || strings.Contains(line, "<b>") {
			t.Fatalf("got %q, %v, want %s", line, err, want)
		}
	}
	for _, query := range []string{"attempt=0", "attempt=x", "after=-1", "attempt=1&attempt=2", "none=1"} {
		if answer := b.get("/console/runs/" + id + "/log?" + query); answer.Status != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400", query, answer.Status)
		}
	}
	if answer := h.signedIn(t, otherToken).get("/console/runs/" + id + "/log?attempt=1"); answer.Status != http.StatusNotFound {
		t.Errorf("another tenant: got %d, want 404", answer.Status)
	}
}
