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
	"github.com/sortie-dev/sortie/functions/console"
	"github.com/sortie-dev/sortie/shared/adapter/tokenfile"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
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

// endLimit is the time within which a sign-out and a revocation on one host end a session, with its
// open streams.
const endLimit = 5 * time.Second

// TestSessionsAreCheckedInTime adds the times of all that can delay the end of a session.
func TestSessionsAreCheckedInTime(t *testing.T) {
	t.Parallel()
	for what, longest := range map[string]time.Duration{
		"sign-out": console.Recheck, "revocation": tokenfile.CacheTime + console.Recheck, "revocation of a stream of the API": tokenfile.CacheTime + httpkit.RecheckInterval,
	} {
		if longest > endLimit {
			t.Errorf("%s: got an end after at most %s, want %s", what, longest, endLimit)
		}
	}
}

// TestStreamsEndWithTheSession signs out and revokes the token while streams are open.
func TestStreamsEndWithTheSession(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*home, *browser, string){
		"sign-out":   func(_ *home, b *browser, _ string) { b.post("/console/sign-out") },
		"revocation": func(h *home, b *browser, _ string) { h.tokens.revoke(b.t, "owner") },
		"revocation in a file": func(_ *home, b *browser, file string) {
			if err := tokenfile.Update(file, func(all []access.Token) ([]access.Token, error) { return access.Revoke(all, "owner") }); err != nil {
				b.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := setupEvents(t)
			id := h.Accept(t)
			h.Start(t, id)
			file := ""
			if name == "revocation in a file" {
				file = h.tokens.store(t, h.Clock)
			}
			b, other := h.signedIn(t, ownerToken), h.signedIn(t, readerToken)
			b.page("/console/runs")
			streams := map[string]*bufio.Reader{
				"changes": b.follow("/console/stream"), "log": b.follow("/console/runs/" + id + "/log?attempt=1&after=0"),
				"events of the API": b.follow("/console/json/v1/events/stream", "Accept", "text/event-stream"),
			}
			end(h, b, file)
			h.Clock.Advance(endLimit)
			for what, s := range streams {
				if rest, err := io.ReadAll(s); strings.Contains(string(rest), "data:") {
					t.Errorf("%s: got %q, %v, want the end of the stream", what, rest, err)
				}
			}
			if answer := b.get("/console/runs"); answer.Status != http.StatusSeeOther || !strings.Contains(answer.Header.Get("Location"), "/console/sign-in") {
				t.Errorf("got %d to %q, want the page to sign in", answer.Status, answer.Header.Get("Location"))
			}
			other.page("/console/runs")
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
