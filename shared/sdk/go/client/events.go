package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/sortie-dev/sortie/shared/sdk/go/api"
)

// EventStreamQuery selects the events of a stream. An empty field selects all.
type EventStreamQuery struct {
	// After is where the stream begins: a cursor, "earliest" or "latest", which is the default.
	After string
	// Types are types of events, or patterns such as job.*.
	Types                             []string
	ProjectID, JobID, TaskID, BatchID string
	// ParentRunID selects the events of the children of a run; "none" leaves out those of children.
	ParentRunID string
	// Label selects by the labels of runs, such as team=data,env!=dev.
	Label string
	// OnGap is called if events behind the cursor were deleted. The stream continues with the
	// oldest one. Without it the stream ends with an *Error with the code CURSOR_EXPIRED.
	OnGap func(*api.StreamGap)
}

func (q EventStreamQuery) values() url.Values {
	v := url.Values{}
	setText(v, "after", q.After)
	setList(v, "types", q.Types)
	setText(v, "projectId", q.ProjectID)
	setText(v, "jobId", q.JobID)
	setText(v, "taskId", q.TaskID)
	setText(v, "batchId", q.BatchID)
	setText(v, "parentRunId", q.ParentRunID)
	setText(v, "label", q.Label)
	if q.OnGap == nil {
		v.Set("gap", "fail")
	}
	return v
}

// EventStream is a stream of events. It connects again by itself.
type EventStream struct {
	t      *transport
	query  EventStreamQuery
	cursor atomic.Pointer[string]
}

// Stream returns the events of GET /v1/events/stream. It opens nothing before All is used.
func (s Events) Stream(query EventStreamQuery) *EventStream {
	stream := &EventStream{t: s.t, query: query}
	stream.cursor.Store(&query.After)
	return stream
}

// Cursor returns the cursor behind the newest event. Store it with the effect of the event, so
// that another process can continue.
func (s *EventStream) Cursor() string { return *s.cursor.Load() }

// All yields the events, each once and in order, until ctx ends or the caller stops. It
// continues behind Cursor.
func (s *EventStream) All(ctx context.Context) iter.Seq2[*api.Event, error] {
	return func(yield func(*api.Event, error) bool) {
		var failed error
		err := s.t.follow(ctx, resumption{
			cursor: s.Cursor(),
			call: func(cursor string) call {
				query := s.query
				query.After = cursor
				return call{method: http.MethodGet, path: "/v1/events/stream", query: query.values(), accept: "text/event-stream"}
			},
			last:  func(message) bool { return failed != nil },
			moved: func(cursor string) { s.cursor.Store(&cursor) },
		}, func(m message) bool {
			if m.event == "stream.gap" {
				gap, err := decodeMessage[api.StreamGap]([]byte(m.data))
				if err != nil {
					failed = err
				} else if s.query.OnGap != nil {
					s.query.OnGap(gap)
				}
				return err == nil
			}
			event, err := decodeMessage[api.Event]([]byte(m.data))
			if err != nil {
				failed = err
				return false
			}
			return yield(event, nil)
		})
		if failed != nil {
			err = failed
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// Lines returns one page of events as lines of JSON, and the cursor behind it. signed selects
// DSSE envelopes, which "sortie events verify" checks.
func (s Events) Lines(ctx context.Context, query EventsListQuery, signed bool, options ...Option) (lines []byte, next string, err error) {
	what := call{method: http.MethodGet, path: "/v1/events", query: query.values(), accept: "application/x-ndjson"}
	if signed {
		what.accept = "application/vnd.dsse+x-ndjson"
	}
	var header http.Header
	lines, err = s.t.send(ctx, what, append(options, WithResponseHeader(&header)))
	return lines, header.Get("X-Next-Cursor"), err
}

// WebSocket returns the address and the header with which a library of WebSockets opens
// GET /v1/events/ws. Each text frame is an api.StreamMessage.
func (s Events) WebSocket(query EventStreamQuery) (address string, header http.Header) {
	header = http.Header{"User-Agent": {"sortie-go/" + Version}}
	if s.t.token != "" {
		header.Set("Authorization", "Bearer "+s.t.token)
	}
	return "ws" + strings.TrimPrefix(s.t.base, "http") + "/v1/events/ws?" + query.values().Encode(), header
}
