package stream_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// examples are the examples of stream messages in the OpenAPI document.
type examples struct {
	sse map[string]string
	ws  []string
}

func readExamples(t *testing.T) (found examples) {
	t.Helper()
	var document struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct {
				Content map[string]struct {
					Examples map[string]struct{ Value string }
				}
			}
		}
		Components struct {
			Schemas map[string]struct{ Examples []any }
		}
	}
	if err := yaml.Unmarshal(contract.OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	found.sse = map[string]string{}
	for name, example := range document.Paths[path]["get"].Responses["200"].Content["text/event-stream"].Examples {
		found.sse[name] = example.Value
	}
	for _, example := range document.Components.Schemas["StreamMessage"].Examples {
		text, err := json.Marshal(example)
		if err != nil {
			t.Fatal(err)
		}
		found.ws = append(found.ws, string(text))
	}
	if len(found.sse) < 5 || len(found.ws) < 5 {
		t.Fatalf("got %d and %d examples, want at least five of each", len(found.sse), len(found.ws))
	}
	return found
}

// The epoch and the positions of the examples.
const (
	exampleEpoch = "e1f0a9"
	examplePlace = 17 // of the event
)

// randomRetry matches a random time from 1 to 5 s. RefusedRetry is not random.
var randomRetry = regexp.MustCompile(`(retry: |"retryMs":)([1-4]\d{3})\b`)

// plain replaces the differences between two streams: the epoch and random times.
func (b *bench) plain(text string) string {
	if epoch := b.Cursor().Epoch; epoch != "" {
		text = strings.ReplaceAll(text, epoch+"-", exampleEpoch+"-")
	}
	return randomRetry.ReplaceAllString(text, "${1}1000")
}

// canonical returns JSON in a form that can be compared.
func canonical(t *testing.T, text string) string {
	t.Helper()
	form, err := events.Canonical([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return string(form)
}

// event returns the event of the examples.
func (e examples) event(t *testing.T) json.RawMessage {
	t.Helper()
	_, data, found := strings.Cut(e.sse["event"], "\ndata: ")
	if !found {
		t.Fatalf("got the example %q, want an event", e.sse["event"])
	}
	return json.RawMessage(strings.TrimSpace(data))
}

// withExample returns a stream that has the event of the examples at its position, and one
// later event.
func withExample(t *testing.T, e examples) *bench {
	t.Helper()
	b := setup(t, settings)
	b.add(t, slices.Repeat([]eventtype.Type{eventtype.Queued}, examplePlace-1)...)
	key, err := events.NewKey([]byte(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	payload := []byte(strings.Replace(string(e.event(t)), `"delivery":"plain"`, `"delivery":"dsse"`, 1))
	signed, err := events.Sign(t.Context(), payload, key)
	if err != nil {
		t.Fatal(err)
	}
	first, err := events.Parse(payload)
	if err != nil {
		t.Fatal(err)
	}
	next, err := json.Marshal(b.Event(examplePlace+1, eventtype.Queued))
	if err != nil {
		t.Fatal(err)
	}
	other, err := events.Sign(t.Context(), next, key)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.feed.Append(t.Context(), port.EventStream(apitest.Tenant), port.Batch{After: examplePlace - 1, Records: []port.FeedRecord{
		{ID: first.EventID, At: b.Clock.Now(), Data: signed}, {ID: events.ID("01KA0000000000000000000001"), At: b.Clock.Now(), Data: other},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// withGap returns a stream whose oldest event is the 100th, and whose newest is the 412th.
func withGap(t *testing.T) *bench {
	t.Helper()
	b := setup(t, settings)
	add := func(n int) { b.add(t, slices.Repeat([]eventtype.Type{eventtype.Queued}, n)...) }
	add(99)
	b.Clock.Advance(retention - time.Second)
	add(200)
	add(113)
	b.Clock.Advance(2 * time.Second)
	return b
}

// TestExamplesAreRealMessages compares each example of a message in the OpenAPI document
// with the message that a stream sends. Only the epoch and random times differ.
func TestExamplesAreRealMessages(t *testing.T) {
	t.Parallel()
	e := readExamples(t)
	b, gone := withExample(t, e), withGap(t)
	last := b.at(examplePlace + 1)
	text := func(m map[string]string) (text string) {
		for _, name := range []string{"retry", "id", "event", "data"} {
			if value, ok := m[name]; ok {
				text += name + ": " + value + "\n"
			}
		}
		return text + "\n"
	}
	sse := map[string]string{}
	s := b.open(t, path+"?after="+b.at(examplePlace-1))
	s.message(t) // the retry
	s.message(t) // the cursor
	sse["event"] = text(s.message(t))
	behind := b.open(t, path+"?after="+last)
	behind.message(t)
	sse["cursor"] = text(behind.message(t))
	sse["gap"] = text(gone.open(t, path, "Last-Event-ID", gone.at(examplePlace)).message(t))

	var ws []string
	socket := b.dial(t, "?after="+b.at(examplePlace-1))
	ws = append(ws, socket.text(t), socket.text(t)) // the cursor with a retry, the event
	socket.message(t)
	ws = append(ws, gone.dial(t, "?after="+gone.at(examplePlace)).text(t))
	b.Clock.Advance(stream.CursorInterval)
	ws = append(ws, socket.text(t))
	behind.message(t)
	closed := make(chan error, 1)
	go func() { closed <- b.streams.Close(t.Context()) }()
	sse["end"] = behind.rest(t)
	ws = append(ws, socket.text(t))
	if err := <-closed; err != nil {
		t.Error(err)
	}
	sse["refused"] = b.open(t, path).rest(t)
	ws = append(ws, b.dial(t, "").text(t))

	for name, want := range e.sse {
		got := b.plain(gone.plain(sse[name]))
		if want = randomRetry.ReplaceAllString(want, "${1}1000"); got != want {
			t.Errorf("example %s of Server-Sent Events: got the message %q, want %q", name, got, want)
		}
	}
	if len(ws) != len(e.ws) {
		t.Errorf("got %d messages of a WebSocket, want one for each of the %d examples", len(ws), len(e.ws))
	}
	for i, want := range e.ws {
		got := randomRetry.ReplaceAllString(canonical(t, b.plain(gone.plain(ws[i]))), "${1}1000")
		if want = randomRetry.ReplaceAllString(canonical(t, want), "${1}1000"); got != want {
			t.Errorf("example %d of a WebSocket: got the message %s, want %s", i+1, got, want)
		}
	}
}

// text reads a message unchanged.
func (s socket) text(t *testing.T) string {
	t.Helper()
	_, text, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(fmt.Errorf("got no message: %w", err))
	}
	return string(text)
}
