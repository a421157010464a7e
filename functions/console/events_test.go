package console_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events/eventtype"
	functionevents "github.com/sortie-dev/sortie/functions/events"
	readers "github.com/sortie-dev/sortie/functions/stream"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/streamtest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// setupEvents is like setup, with a stream of events and its writer.
func setupEvents(t *testing.T) (*home, *streamtest.Writer) {
	t.Helper()
	var w *streamtest.Writer
	h := setup(t, func(parts apitest.Parts, _ *app.System) []httpkit.Route {
		feed := fake.NewFeed(parts.Clock, time.Hour, nil, func(err error) { t.Error(err) })
		var err error
		if w, err = streamtest.New(feed, apitest.Tenant, parts.Clock); err != nil {
			t.Fatal(err)
		}
		streams := stream.New(feed, parts.Clock, slog.New(slog.DiscardHandler), func() float64 { return 0 }, stream.Config{Life: time.Hour, Readers: 10})
		return append(functionevents.Routes(streams, grants.NewTokens(parts.Signer, parts.Clock, nil)), readers.Routes(streams, parts.Clock)...)
	})
	return h, w
}

func add(t *testing.T, w *streamtest.Writer, types ...eventtype.Type) {
	t.Helper()
	if err := w.Add(t.Context(), true, types...); err != nil {
		t.Fatal(err)
	}
}

func TestEventsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	h, w := setupEvents(t)
	b := h.signedIn(t, ownerToken)
	b.page("/console/events", "There are no events yet", "data-new")
	for range 40 {
		add(t, w, eventtype.Accepted, eventtype.Admitted, eventtype.Failed)
	}
	row, older := regexp.MustCompile(`id="event-(\d+)"`), regexp.MustCompile(`href="\./([^"]+)" rel="next"`)
	for filter, want := range map[string]struct{ rows, pages int }{
		"": {120, 3}, "types=job.failed": {40, 1}, "types=job.f*,+job.admitted": {80, 2}, "taskId=job_7": {1, 1}, "types=schedule.*": {0, 1},
	} {
		path, pages, rows, last := "/console/events?"+filter, 0, 0, 121
		for path != "" {
			text := b.page(path)
			for _, found := range row.FindAllStringSubmatch(text, -1) {
				var n int
				if _, err := fmt.Sscan(found[1], &n); err != nil || n >= last {
					t.Fatalf("%q: got the event %s after %d, want older ones", filter, found[1], last)
				}
				last, rows = n, rows+1
			}
			pages, path = pages+1, ""
			if next := older.FindStringSubmatch(text); next != nil {
				path = "/console/" + html.UnescapeString(next[1])
			}
		}
		if rows != want.rows || pages != want.pages {
			t.Errorf("%q: got %d events on %d pages, want %+v", filter, rows, pages, want)
		}
	}
	b.page("/console/events?types=job.failed", "sortie events tail --type job.failed", `aria-label="Filters"`)
	b.page("/console/events?types=schedule.*", "No event matches these filters among the last 120.")
	for _, query := range []string{"types=none", "cursor=x", "none=1"} {
		if answer := b.get("/console/events?" + query); answer.Status != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400", query, answer.Status)
		}
	}
	if answer := b.get("/console/events?cursor=other-3"); answer.Status != http.StatusGone {
		t.Errorf("got %d for a cursor of another stream, want 410", answer.Status)
	}
}

func TestEventIsShownWithItsEnvelope(t *testing.T) {
	t.Parallel()
	h, w := setupEvents(t)
	w.Message = `<script>alert(1)</script> "><img src=x onerror=alert(1)> ` + "\u202e"
	add(t, w, eventtype.Accepted, eventtype.Failed, eventtype.Completed)
	b := h.signedIn(t, ownerToken)
	at := strings.TrimSuffix(w.Cursor().String(), "3") + "2"
	for _, path := range []string{"/console/events/" + at, "/console/events/2"} {
		text := b.page(path, "job.failed", "&#34;eventType&#34;: &#34;job.failed&#34;", "urn:orch:event:", `data-verify="../json/v1/events"`, "sortie events verify events.ndjson", "--until 2",
			`href="../runs/job_2"`, "Earlier", "Later", "event-")
		for _, never := range []string{"<script>alert", "<img", "\u202e"} {
			if strings.Contains(text, never) || strings.Contains(b.page("/console/events"), never) {
				t.Errorf("%s: got %q in the page", path, never)
			}
		}
	}
	for _, path := range []string{"4", "0", "-1", "x", "other-1", "%3Cscript%3E"} {
		if answer := b.get("/console/events/" + path); answer.Status != http.StatusNotFound || strings.Contains(answer.Body, "<script>alert") {
			t.Errorf("%s: got %d, want 404", path, answer.Status)
		}
	}
	if to := b.get("/console/events?event=2").Header.Get("Location"); to != "/console/events/2" {
		t.Errorf("got %q, want the event", to)
	}
}

func TestEventsNeedTheirScopeAndTenant(t *testing.T) {
	t.Parallel()
	h, w := setupEvents(t)
	add(t, w, eventtype.Failed)
	reader := h.signedIn(t, readerToken)
	if text := reader.page("/console/runs"); strings.Contains(text, ">Events<") {
		t.Error("got a link to the events without events:read")
	}
	for _, path := range []string{"/console/events", "/console/events/1", "/console/events/proof", "/console/json/v1/events"} {
		if answer := reader.get(path); answer.Status != http.StatusForbidden {
			t.Errorf("%s: got %d, want 403", path, answer.Status)
		}
	}
	other := h.signedIn(t, otherToken)
	other.page("/console/events", "There are no events yet")
	for _, path := range []string{"/console/events/1", "/console/events/" + w.Cursor().String()} {
		if answer := other.get(path); answer.Status != http.StatusNotFound {
			t.Errorf("%s: got %d of another tenant, want 404", path, answer.Status)
		}
	}
}

// TestBrowserVerifiesEvents runs the module of the pages in Node.js: it accepts what the API
// returns, and refuses each change of it.
func TestBrowserVerifiesEvents(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("node does not run: %v", err)
		}
		t.Skipf("node does not run: %v; install Node.js 20 or later", err)
	}
	h, w := setupEvents(t)
	add(t, w, eventtype.Accepted, eventtype.Queued, eventtype.Admitted)
	add(t, w, eventtype.Started, eventtype.Failed)
	add(t, w, eventtype.Accepted, eventtype.Completed)
	b := h.signedIn(t, ownerToken)
	b.page("/console/events/proof", `data-prove="../json/v1/events"`, `data-until="7"`, "Events 1 to 7", "verify.js")
	for _, query := range []string{"after=x", "until=" + strings.TrimSuffix(w.Cursor().String(), "7") + "0&after=" + w.Cursor().String(), "until=other-3"} {
		if answer := b.get("/console/events/proof?" + query); answer.Status != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400", query, answer.Status)
		}
	}
	answer := b.send(http.MethodGet, "/console/json/v1/events", "", "Accept", "application/vnd.dsse+x-ndjson")
	if answer.Status != http.StatusOK || answer.Header.Get("X-Next-Cursor") != w.Cursor().String() {
		t.Fatalf("got %d %v, want the signed events", answer.Status, answer.Header)
	}
	lines := strings.Split(strings.TrimSpace(answer.Body), "\n")
	without := func(at int) []string { return append(append([]string{}, lines[:at]...), lines[at+1:]...) }
	swapped := append([]string{}, lines...)
	swapped[4], swapped[5] = swapped[5], swapped[4]
	forged := append([]string{}, lines...)
	forged[1] = strings.Replace(forged[1], `"payload":"ey`, `"payload":"eX`, 1)
	keys, err := w.Keys().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]string{"whole": lines, "removed": without(4), "swapped": swapped, "forged": forged, "no checkpoint": lines[:3], "from a checkpoint": lines[3:], "from an event": lines[1:]}
	input, err := json.Marshal(map[string]any{"keys": json.RawMessage(keys), "files": files})
	if err != nil {
		t.Fatal(err)
	}
	const script = `
import { readFileSync } from "node:fs";
const { importKeys, Proof } = await import(process.argv[1]);
const { keys, files } = JSON.parse(readFileSync(0, "utf8"));
const known = await importKeys(keys);
const results = {};
for (const [name, lines] of Object.entries(files)) {
  const proof = new Proof(known);
  try {
    for (const line of lines) await proof.line(line);
    const { from, to, events, outside } = proof.result();
    results[name] = [from, to, events, outside].join(" ");
  } catch (error) {
    results[name] = "refused: " + error.message;
  }
}
console.log(JSON.stringify(results));`
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), node, "--input-type=module", "--eval", script, folder+"/ui/static/verify.js")
	command.Stdin = strings.NewReader(string(input))
	text, err := command.Output()
	var got map[string]string
	if err != nil || json.Unmarshal(text, &got) != nil {
		t.Fatalf("got %s, %v", text, err)
	}
	for name, want := range map[string]string{
		"whole": "0 7 7 0", "from a checkpoint": "3 7 4 0", "from an event": "3 7 6 2", "removed": "refused: ", "swapped": "refused: ", "forged": "refused: ", "no checkpoint": "refused: ",
	} {
		if !strings.HasPrefix(got[name], want) {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
}

// TestStreamEndsWithTheSession follows the stream of events through the console until the reader
// signs out.
func TestStreamEndsWithTheSession(t *testing.T) {
	t.Parallel()
	h, w := setupEvents(t)
	b := h.signedIn(t, ownerToken)
	b.page("/console/events", `<main id="main" data-live="">`, "data-new")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+"/console/json/v1/events/stream?as=message&after=0", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	for name, value := range b.cookies {
		request.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	response, err := h.Client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if kind := response.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("got %d %s, want a stream", response.StatusCode, kind)
	}
	lines := bufio.NewScanner(response.Body)
	add(t, w, eventtype.Failed)
	for seen := false; !seen; seen = strings.Contains(lines.Text(), "job.failed") {
		if !lines.Scan() {
			t.Fatalf("got the end of the stream: %v", lines.Err())
		}
	}
	if answer := b.post("/console/sign-out"); answer.Status != http.StatusSeeOther {
		t.Fatalf("got %d, want a browser that is signed out", answer.Status)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines.Scan() { //nolint:revive // until the end
		}
	}()
	for {
		select {
		case <-ended:
			return
		default:
			h.Clock.Advance(time.Second)
			runtime.Gosched()
		}
	}
}
