package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/sdk/go/api"
)

// TestServerSentEvents decodes the streams that all SDKs share.
func TestServerSentEvents(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "sse.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name   string
		Chunks []string
		Events []struct{ ID, Event, Data string }
		LastID string `json:"lastEventId"`
		Retry  *int64
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for _, row := range cases {
		d := &decoder{}
		var got []message
		for _, chunk := range row.Chunks {
			content, err := base64.StdEncoding.DecodeString(chunk)
			if err != nil {
				t.Fatal(err)
			}
			messages, err := d.decode(content)
			if err != nil {
				t.Errorf("%s: %v", row.Name, err)
			}
			got = append(got, messages...)
		}
		var want []message
		for _, e := range row.Events {
			want = append(want, message{e.ID, e.Event, e.Data})
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) || d.lastID != row.LastID {
			t.Errorf("%s: got %q and last id %q, want %q and %q", row.Name, got, d.lastID, want, row.LastID)
		}
		if (d.retry == nil) != (row.Retry == nil) || d.retry != nil && d.retry.Milliseconds() != *row.Retry {
			t.Errorf("%s: got retry %v, want %v", row.Name, d.retry, row.Retry)
		}
	}
}

func TestMessageOfAnySizeIsRefused(t *testing.T) {
	t.Parallel()
	d := &decoder{}
	var err error
	for range 20 {
		_, err = d.decode([]byte("data: " + strings.Repeat("x", 1<<20) + "\n"))
	}
	if !errors.Is(err, errTooLarge) {
		t.Errorf("got %v, want %v", err, errTooLarge)
	}
}

// TestEventsAreResumed breaks a stream after each event, in the middle of the next one.
func TestEventsAreResumed(t *testing.T) {
	t.Parallel()
	var asked []string
	c := testClient(t, func(w http.ResponseWriter, r *http.Request) {
		after := r.URL.Query().Get("after")
		asked = append(asked, after)
		if len(asked) == 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		n := 1
		_, _ = fmt.Sscanf(after, "c-%d", &n)
		_, _ = fmt.Fprintf(w, "retry: 1\n\nid: c-%d\nevent: job.completed\ndata: {\"eventId\": \"e%d\", \"eventType\": \"job.completed\"}\n\nid: c-9\ndata: {", n+1, n)
	})
	stream := c.Events.Stream(EventStreamQuery{After: "earliest", Types: []string{"job.*"}})
	var got []string
	for event, err := range stream.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, event.EventID)
		if len(got) == 3 {
			break
		}
	}
	if fmt.Sprint(got) != "[e1 e2 e3]" || stream.Cursor() != "c-4" || fmt.Sprint(asked) != "[earliest c-2 c-3 c-3]" {
		t.Errorf("got events %v, cursor %s, requests %v, want e1 to e3 behind c-4", got, stream.Cursor(), asked)
	}
}

func TestStreamEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	c := testClient(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		cancel(reason)
		<-r.Context().Done()
	})
	var got error
	for _, err := range c.Events.Stream(EventStreamQuery{}).All(ctx) {
		got = err
	}
	if !errors.Is(got, reason) {
		t.Errorf("got %v, want %v", got, reason)
	}
}

func TestGapsAreReported(t *testing.T) {
	t.Parallel()
	c := testClient(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("gap") == "fail" {
			w.WriteHeader(http.StatusGone)
			_, _ = io.WriteString(w, `{"type": "urn:sortie:problem:cursor-expired", "title": "Gone", "status": 410, "detail": "deleted", "code": "CURSOR_EXPIRED"}`)
			return
		}
		_, _ = io.WriteString(w, "id: c-5\nevent: stream.gap\ndata: {\"oldest\": \"c-5\"}\n\nid: c-6\nevent: x\ndata: {\"eventId\": \"e6\"}\n\n")
	})
	for _, err := range c.Events.Stream(EventStreamQuery{After: "c-1"}).All(t.Context()) {
		if !HasCode(err, api.CodeCursorExpired) || !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v, want CURSOR_EXPIRED", err)
		}
	}
	var gap *api.StreamGap
	for event, err := range c.Events.Stream(EventStreamQuery{After: "c-1", OnGap: func(g *api.StreamGap) { gap = g }}).All(t.Context()) {
		if err != nil || event.EventID != "e6" || gap == nil || gap.Oldest != "c-5" {
			t.Errorf("got %v, %v after gap %v, want e6", event, err, gap)
		}
		break
	}
}

func TestLogIsFollowedOverABreak(t *testing.T) {
	t.Parallel()
	requests := 0
	c := testClient(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		if requests == 1 {
			_, _ = io.WriteString(w, `{"attempt": 1, "stream": "stdout", "data": "YQ==", "next": 12}`+"\n\n"+`{"attempt": 1, "str`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		if q := r.URL.Query(); q.Get("offset") != "12" || q.Get("attempt") != "1" || q.Get("follow") != "true" {
			t.Errorf("got %v, want to continue at 12", q)
		}
		_, _ = io.WriteString(w, `{"attempt": 1, "stream": "stdout", "data": "Yg==", "next": 13}`+"\n"+`{"attempt": 1, "next": 13, "ended": true}`+"\n")
	})
	var text string
	for line, err := range c.Tasks.FollowLogs(t.Context(), "job_1", LogQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		text += string(line.Data)
	}
	if text != "ab" || requests != 2 {
		t.Errorf("got %q in %d requests, want ab in 2", text, requests)
	}
}

func TestSilentStreamIsOpenedAgain(t *testing.T) {
	t.Parallel()
	c := testClient(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	response, err := c.transport.stream(t.Context(), call{method: http.MethodGet, path: "/x"}, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.ReadAll(response.Body); !isBreak(err) {
		t.Errorf("got %v, want a break of the stream", err)
	}
}

func TestStreamOfATaskEndsWithIt(t *testing.T) {
	t.Parallel()
	c := testClient(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Last-Event-ID") == "" {
			_, _ = io.WriteString(w, "retry: 1\n\nid: 1\nevent: token\ndata: {\"t\": 1}\n\n")
			return
		}
		_, _ = io.WriteString(w, "id: 2\nevent: end\ndata: {}\n\n")
	})
	var names []string
	for event, err := range c.Inference.Stream(t.Context(), "inf_1", "") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, event.Name)
	}
	if fmt.Sprint(names) != "[token end]" {
		t.Errorf("got %v, want token, end", names)
	}
}
