package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/sortie-dev/sortie/shared/contract"
)

// Cancel requests the cancellation of a task. It is idempotent.
func (c *Client) Cancel(ctx context.Context, taskID, reason string) (contract.CancelAnswer, error) {
	var answer contract.CancelAnswer
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: taskPath(taskID, "cancel"), body: contract.CancelRequest{Reason: reason}, repeat: true,
	}, &answer)
	return answer, err
}

// Retry creates a new task with the work of one that has ended. key is the
// Idempotency-Key, which makes the call safe to repeat.
func (c *Client) Retry(ctx context.Context, taskID, key string) (contract.RetryAccepted, error) {
	var answer contract.RetryAccepted
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: taskPath(taskID, "retry"), header: http.Header{"Idempotency-Key": {key}},
		body: struct{}{}, repeat: true,
	}, &answer)
	return answer, err
}

// Log is the output that a worker has written so far.
type Log struct {
	Attempt int
	Text    []byte
	// Ended reports that the log is complete.
	Ended bool
}

// Log reads the log of an attempt, 0 for the latest.
func (c *Client) Log(ctx context.Context, taskID string, attempt int) (Log, error) {
	what := call{method: http.MethodGet, path: taskPath(taskID, "logs"), repeat: true}
	if attempt > 0 {
		what.query = url.Values{"attempt": {strconv.Itoa(attempt)}}
	}
	var log Log
	header, err := c.do(ctx, what, &log.Text)
	if err != nil {
		return Log{}, err
	}
	log.Ended = header.Get("X-Log-Ended") == "true"
	log.Attempt, _ = strconv.Atoi(header.Get("X-Attempt")) //nolint:errcheck // 0 is unknown
	return log, nil
}

func taskPath(taskID, what string) string { return "v1/tasks/" + url.PathEscape(taskID) + "/" + what }
