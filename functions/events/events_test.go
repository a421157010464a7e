package events_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	functionevents "github.com/sortie-dev/sortie/functions/events"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/streamtest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

const (
	path   = "/v1/events"
	signed = "application/vnd.dsse+x-ndjson"
	lines  = "application/x-ndjson"
)

// setup starts a server and the writer of its stream.
func setup(t *testing.T) (*apitest.Stage, *streamtest.Writer) {
	t.Helper()
	parts := apitest.NewParts(t)
	feed := fake.NewFeed(parts.Clock, time.Hour, nil, func(err error) { t.Error(err) })
	w, err := streamtest.New(feed, apitest.Tenant, parts.Clock)
	if err != nil {
		t.Fatal(err)
	}
	streams := stream.New(feed, parts.Clock, slog.New(slog.DiscardHandler), func() float64 { return 0 }, stream.Config{})
	return apitest.New(t, parts, func(*app.System) []httpkit.Route {
		return functionevents.Routes(streams, grants.NewTokens(parts.Signer, parts.Clock, nil))
	}), w
}

func add(t *testing.T, w *streamtest.Writer, types ...eventtype.Type) {
	t.Helper()
	if err := w.Add(t.Context(), true, types...); err != nil {
		t.Fatal(err)
	}
}

// get reads a page.
func get(t *testing.T, stage *apitest.Stage, query string) (page contract.EventPage) {
	t.Helper()
	answer := stage.Call(t, http.MethodGet, path+query, "")
	if err := json.Unmarshal([]byte(answer.Body), &page); err != nil || answer.Status != http.StatusOK || answer.Header.Get("X-Next-Cursor") != page.Next {
		t.Fatalf("%s: got %d %v %s, %v, want a page", query, answer.Status, answer.Header, answer.Body, err)
	}
	return page
}

func TestPages(t *testing.T) {
	t.Parallel()
	stage, w := setup(t)
	if page := get(t, stage, ""); len(page.Events) != 0 || page.Next != "0" {
		t.Errorf("got %+v of an empty stream, want no events and 0", page)
	}
	add(t, w, eventtype.Accepted, eventtype.Queued, eventtype.Failed)
	at := func(n int64) string { return stream.Cursor{Epoch: w.Cursor().Epoch, Position: n}.String() }
	for query, want := range map[string]struct {
		first, n int
		next     string
	}{
		"":                                {1, 3, at(3)},
		"?after=0&limit=2":                {1, 2, at(2)},
		"?after=" + at(2):                 {3, 1, at(3)},
		"?after=latest":                   {0, 0, at(3)},
		"?types=job.f*,policy.updated":    {3, 1, at(3)},
		"?taskId=job_2&projectId=main":    {2, 1, at(3)},
		"?jobId=nightly":                  {0, 0, at(3)},
		"?batchId=b&after=" + at(1):       {0, 0, at(3)},
		"?label=team%3Ddata":              {0, 0, at(3)},
		"?label=!team&taskId=job_2":       {2, 1, at(3)},
		"?types=*&limit=1&after=" + at(1): {2, 1, at(2)},
	} {
		page := get(t, stage, query)
		if len(page.Events) != want.n || page.Next != want.next {
			t.Errorf("%s: got %d events, next %s, want %d, next %s", query, len(page.Events), page.Next, want.n, want.next)
			continue
		}
		if want.n == 0 {
			continue
		}
		if e, err := events.Parse(page.Events[0]); err != nil || e.Job.ID != streamtest.Task(int64(want.first)) || e.Notifier.Delivery != events.DeliveryPlain {
			t.Errorf("%s: got %s, %v, want the event %d", query, page.Events[0], err, want.first)
		}
	}
}

func TestContentTypes(t *testing.T) {
	t.Parallel()
	stage, w := setup(t)
	add(t, w, eventtype.Accepted, eventtype.Queued)
	add(t, w, eventtype.Failed)
	for accept, kind := range map[string]string{"": "application/json", "*/*": "application/json", lines: lines, signed: signed} {
		answer := stage.Call(t, http.MethodGet, path, "", "Accept", accept)
		if got := answer.Header.Get("Content-Type"); got != kind || answer.Status != http.StatusOK {
			t.Errorf("%q: got %d %s, want 200 %s", accept, answer.Status, got, kind)
		}
	}
	if answer := stage.Call(t, http.MethodGet, path, "", "Accept", "text/html"); answer.Status != http.StatusNotAcceptable {
		t.Errorf("got %d %s for text/html, want 406", answer.Status, answer.Body)
	}
	text := stage.Call(t, http.MethodGet, path, "", "Accept", lines).Body
	if n := strings.Count(text, "\n"); n != 3 || !strings.HasSuffix(text, "}\n") {
		t.Errorf("got %d lines %q, want one of each event", n, text)
	}
	for line := range strings.Lines(text) {
		if _, err := events.Parse([]byte(line)); err != nil {
			t.Errorf("%s: got %v, want an envelope", line, err)
		}
	}
	file := stage.Call(t, http.MethodGet, path, "", "Accept", signed).Body
	proof, err := events.Verify(t.Context(), strings.NewReader(file), w.Keys())
	if want := (events.Proof{Origin: events.Origin(apitest.Tenant, w.Cursor().Epoch), Events: 3, To: 3}); err != nil || proof != want {
		t.Errorf("got %+v, %v, want %+v", proof, err, want)
	}
	only := stage.Call(t, http.MethodGet, path+"?types=job.failed", "", "Accept", signed).Body
	if strings.Contains(only, "checkpoint") || strings.Count(only, "\n") != 1 {
		t.Errorf("got %s with a filter, want one event without checkpoints", only)
	}
}

// TestLinesHaveACursor follows pages of lines that are shorter than the limit, or empty.
func TestLinesHaveACursor(t *testing.T) {
	t.Parallel()
	stage, w := setup(t)
	add(t, w, eventtype.Accepted, eventtype.Failed, eventtype.Queued)
	for _, accept := range []string{lines, signed} {
		for query, want := range map[string]struct{ n, next int }{"types=job.failed": {1, 3}, "types=job.cancelled": {0, 3}, "types=job.*&limit=2": {2, 2}} {
			answer := stage.Call(t, http.MethodGet, path+"?"+query, "", "Accept", accept)
			if got := answer.Header.Get("X-Next-Cursor"); strings.Count(answer.Body, "\n") != want.n || got != fmt.Sprintf("%s-%d", w.Cursor().Epoch, want.next) {
				t.Errorf("%s %s: got %d lines and cursor %q, want %d and position %d", accept, query, strings.Count(answer.Body, "\n"), got, want.n, want.next)
			}
		}
	}
}

func TestPageRefusals(t *testing.T) {
	t.Parallel()
	stage, w := setup(t)
	add(t, w, eventtype.Accepted)
	for query, want := range map[string]struct {
		status int
		text   string
	}{
		"?after=x": {400, `"field":"after"`},
		"?after=" + url.QueryEscape(w.Cursor().String()+" "): {400, `"field":"after"`},
		"?after=":                           {400, `"field":"after"`},
		"?limit=0":                          {400, `"field":"limit"`},
		"?limit=1001":                       {400, `"field":"limit"`},
		"?types=run.*":                      {400, `"field":"types"`},
		"?project=main":                     {400, `"field":"project"`},
		"?ticket=x":                         {400, `"field":"ticket"`},
		"?after=other-1":                    {410, "CURSOR_EXPIRED"},
		"?after=" + w.Cursor().Epoch + "-2": {410, "CURSOR_EXPIRED"},
	} {
		if answer := stage.Call(t, http.MethodGet, path+query, ""); answer.Status != want.status || !strings.Contains(answer.Body, want.text) {
			t.Errorf("%s: got %d %s, want %d with %s", query, answer.Status, answer.Body, want.status, want.text)
		}
	}
}
