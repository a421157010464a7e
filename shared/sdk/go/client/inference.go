package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/sdk/go/api"
)

// generation is how long a model may be silent.
const generation = 15 * time.Minute

// StreamEvent is an event of the stream of an inference task.
type StreamEvent struct {
	ID string
	// Name is started, token, reasoning, result, metrics, end, error, or a name of a later
	// server.
	Name string
	// Data is a JSON object.
	Data json.RawMessage
}

// Stream yields the answer of an inference task, behind the event after unless that is empty.
// It resumes after a break and ends with the task.
func (s Inference) Stream(ctx context.Context, taskID, after string) iter.Seq2[*StreamEvent, error] {
	return func(yield func(*StreamEvent, error) bool) {
		err := s.t.follow(ctx, resumption{
			cursor: after,
			call: func(cursor string) call {
				what := call{method: http.MethodGet, path: pathOf("/v1/tasks/{task_id}/stream", taskID), accept: "text/event-stream"}
				if cursor != "" {
					WithHeader("Last-Event-ID", cursor)(&what)
				}
				return what
			},
			last:  func(m message) bool { return m.event == "end" || m.event == "error" },
			moved: func(string) {},
		}, func(m message) bool {
			return yield(&StreamEvent{m.id, m.event, json.RawMessage(m.data)}, nil)
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

// StreamChat yields the chunks of a chat completion as they come. It is not resumed.
func (s OpenAI) StreamChat(ctx context.Context, body api.ChatRequest, options ...Option) iter.Seq2[json.RawMessage, error] {
	body.Stream = new(true)
	return s.parts(ctx, call{method: http.MethodPost, path: "/v1/chat/completions", body: body, keyed: true}, options)
}

// StreamCompletion yields the chunks of a completion as they come. It is not resumed.
func (s OpenAI) StreamCompletion(ctx context.Context, body api.CompletionRequest, options ...Option) iter.Seq2[json.RawMessage, error] {
	body.Stream = new(true)
	return s.parts(ctx, call{method: http.MethodPost, path: "/v1/completions", body: body, keyed: true}, options)
}

// StreamResponse yields the events of a response as they come. StreamStoredResponse continues
// a stored one.
func (s OpenAI) StreamResponse(ctx context.Context, body api.ResponseRequest, options ...Option) iter.Seq2[json.RawMessage, error] {
	body.Stream = new(true)
	return s.parts(ctx, call{method: http.MethodPost, path: "/v1/responses", body: body, keyed: true}, options)
}

// StreamStoredResponse yields the events of a stored response behind a sequence number; -1
// means from the beginning.
func (s OpenAI) StreamStoredResponse(ctx context.Context, responseID string, after int64, options ...Option) iter.Seq2[json.RawMessage, error] {
	query := url.Values{"stream": {"true"}}
	if after >= 0 {
		query.Set("starting_after", strconv.FormatInt(after, 10))
	}
	return s.parts(ctx, call{method: http.MethodGet, path: pathOf("/v1/responses/{response_id}", responseID), query: query}, options)
}

func (s OpenAI) parts(ctx context.Context, what call, options []Option) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		what.accept = "text/event-stream"
		prepared, err := s.t.prepare(what, options)
		if err != nil {
			yield(nil, err)
			return
		}
		response, err := s.t.stream(ctx, prepared, generation)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = response.Body.Close() }()
		stopped := false
		_, err = new(decoder).each(response.Body, func(m message) bool {
			if m.data == "[DONE]" {
				return false
			}
			stopped = !yield(json.RawMessage(m.data), nil)
			return !stopped
		}, func() {})
		if err != nil && !stopped {
			yield(nil, err)
		}
	}
}
