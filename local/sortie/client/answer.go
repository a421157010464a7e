package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// CreateTask creates an inference task. Calls with the same key create at most one task.
func (c *Client) CreateTask(ctx context.Context, request contract.TaskRequest, key string) (accepted contract.TaskAccepted, err error) {
	err = c.submit(ctx, call{
		method: http.MethodPost, path: "v1/tasks", body: request, header: http.Header{"Idempotency-Key": {key}},
	}, &accepted)
	return accepted, err
}

// FollowAnswer calls each with the events of an inference task's stream after the id *after. It
// stops when each returns an error, and returns that error. If the stream ends, it reopens it
// there. It sets *after to the id of the last event.
func (c *Client) FollowAnswer(ctx context.Context, taskID string, after *string, each func(name string, data json.RawMessage) error) error {
	for {
		err := c.retry(ctx, func() error {
			what := call{method: http.MethodGet, path: taskPath(taskID, "stream")}
			if *after != "" {
				what.query = url.Values{"after": {*after}}
			}
			return c.readStream(ctx, what, after, func(m sse.Event) error { return each(m.Type, json.RawMessage(m.Data)) })
		})
		if err != nil {
			return err
		}
	}
}

// ErrAnswered is the result of Answer.Add for the last event of a stream.
var ErrAnswered = errors.New("the stream has its last event")

// Answer is the part of a task's answer that a reader has received.
type Answer struct {
	// Text is the answer, and Thought the reasoning before it.
	Text, Thought strings.Builder
	// Tokens and Took are those of the whole answer, after its last event.
	Tokens  int
	Took    time.Duration
	Failure *struct{ Code, Message, Engine string }
}

// Add adds an event. It returns the text that the event adds to the answer or to the reasoning.
func (w *Answer) Add(name string, data json.RawMessage) (text, thought string, err error) {
	switch name {
	case "token":
		var token struct{ T string }
		err = json.Unmarshal(data, &token)
		text = token.T
	case "reasoning":
		var piece struct{ T string }
		err = json.Unmarshal(data, &piece)
		thought = piece.T
	case "end":
		var end struct {
			TokensOut int   `json:"tokens_out"`
			DecodeMS  int64 `json:"decode_ms"`
		}
		if err = json.Unmarshal(data, &end); err == nil {
			w.Tokens, w.Took, err = end.TokensOut, time.Duration(end.DecodeMS)*time.Millisecond, ErrAnswered
		}
	case "error":
		if err = json.Unmarshal(data, &w.Failure); err == nil {
			err = ErrAnswered
		}
	}
	w.Text.WriteString(text)
	w.Thought.WriteString(thought)
	return text, thought, err
}
