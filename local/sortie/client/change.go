package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Cancel requests the cancellation of a task. It is idempotent.
func (c *Client) Cancel(ctx context.Context, taskID, reason string) (contract.CancelAnswer, error) {
	return ask[contract.CancelAnswer](ctx, c, call{
		method: http.MethodPost, path: taskPath(taskID, "cancel"), body: contract.CancelRequest{Reason: reason}, repeat: true,
	})
}

// Retry creates a new task that repeats the work of an ended one. key is the Idempotency-Key,
// which makes the call safe to repeat.
func (c *Client) Retry(ctx context.Context, taskID, key string, changes contract.RetryRequest) (contract.RetryAccepted, error) {
	return ask[contract.RetryAccepted](ctx, c, call{
		method: http.MethodPost, path: taskPath(taskID, "retry"), header: http.Header{"Idempotency-Key": {key}},
		body: changes, repeat: true,
	})
}

// CancelAll requests the cancellation of one page of the runs that a filter selects. The call
// is safe to repeat.
func (c *Client) CancelAll(ctx context.Context, request contract.BulkCancelRequest) (contract.BulkAnswer, error) {
	return ask[contract.BulkAnswer](ctx, c, call{method: http.MethodPost, path: "v1/runs:cancel", body: request, repeat: true})
}

// RetryAll retries a page of the runs that a filter selects. key is the Idempotency-Key
// of all pages, which makes the call safe to repeat.
func (c *Client) RetryAll(ctx context.Context, request contract.BulkRequest, key string) (contract.BulkAnswer, error) {
	return ask[contract.BulkAnswer](ctx, c, call{
		method: http.MethodPost, path: "v1/runs:retry", header: http.Header{"Idempotency-Key": {key}}, body: request, repeat: true,
	})
}

// Label changes the labels of a task; nil removes one. The call is safe to repeat.
func (c *Client) Label(ctx context.Context, taskID string, labels map[string]*string) (contract.Task, error) {
	var task contract.Task
	_, err := c.do(ctx, call{
		method: http.MethodPatch, path: "v1/tasks/" + url.PathEscape(taskID), body: contract.LabelRequest{Labels: labels}, repeat: true,
	}, &task)
	return task, err
}

// LabelAll changes the labels of one page of the runs that a filter selects. The call is safe to
// repeat.
func (c *Client) LabelAll(ctx context.Context, request contract.BulkLabelRequest) (contract.BulkAnswer, error) {
	var answer contract.BulkAnswer
	_, err := c.do(ctx, call{method: http.MethodPatch, path: "v1/runs", body: request, repeat: true}, &answer)
	return answer, err
}

// Pin pins or unpins a run: what is "pin" or "unpin". It is idempotent.
func (c *Client) Pin(ctx context.Context, id, what string) (contract.Task, error) {
	var task contract.Task
	_, err := c.do(ctx, call{method: http.MethodPost, path: "v1/runs/" + url.PathEscape(id) + "/" + what, repeat: true}, &task)
	return task, err
}

// RedeliverActions sends the failed notification of an action of a run again, or all if action is
// empty. It is idempotent while they are being sent.
func (c *Client) RedeliverActions(ctx context.Context, id, action string) (contract.Task, error) {
	var task contract.Task
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: "v1/runs/" + url.PathEscape(id) + "/redeliver", body: contract.RedeliverActionRequest{Action: action}, repeat: true,
	}, &task)
	return task, err
}

func taskPath(taskID, what string) string { return "v1/tasks/" + url.PathEscape(taskID) + "/" + what }
