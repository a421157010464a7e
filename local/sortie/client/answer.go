package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/tmaxmax/go-sse"

	"github.com/sortie-dev/sortie/shared/contract"
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
