package client

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// submitOutage limits the retries of a request whose response was lost. The idempotency key
// makes them safe.
const submitOutage = 10 * time.Second

// Export starts an export. key is the Idempotency-Key: another call with the same key and
// request returns the same task. The call is retried if its response was lost. If the
// connection is refused, it fails at once.
func (c *Client) Export(ctx context.Context, format string, request contract.ExportRequest, key string) (contract.ExportAccepted, error) {
	var accepted contract.ExportAccepted
	err := c.submit(ctx, call{
		method: http.MethodPost, path: "export/" + url.PathEscape(format), body: request,
		header: http.Header{"Idempotency-Key": {key}},
	}, &accepted)
	return accepted, err
}

// Status reads a task's status. With wait, in whole seconds, the server responds when the
// status changes, or after wait.
func (c *Client) Status(ctx context.Context, taskID string, wait time.Duration) (contract.Status, error) {
	status, _, err := c.status(ctx, taskID, wait)
	return status, err
}

func (c *Client) status(ctx context.Context, taskID string, wait time.Duration) (contract.Status, http.Header, error) {
	what := call{method: http.MethodGet, path: "status/" + url.PathEscape(taskID), wait: wait, repeat: true}
	if wait > 0 {
		what.query = url.Values{"wait": {strconv.Itoa(int(wait / time.Second))}}
	}
	var status contract.Status
	header, err := c.do(ctx, what, &status)
	return status, header, err
}

// Page selects a page of a list. The zero value is the first page, of the
// server's default size.
type Page struct {
	// Filter selects tasks, with at most one state. A list of jobs has its Label alone, and lists
	// of other resources ignore it.
	Filter contract.RunFilter
	// Text and Schedule select jobs. Other lists refuse them.
	Text, Schedule string
	Limit          int
	Cursor         string
}

// Tasks reads a page of tasks, newest first.
func (c *Client) Tasks(ctx context.Context, page Page) (contract.TaskList, error) {
	return ask[contract.TaskList](ctx, c, call{method: http.MethodGet, path: "v1/tasks", query: page.query(), repeat: true})
}

func (p Page) query() url.Values {
	query, f := url.Values{}, p.Filter
	set := func(name, value string) {
		if value != "" {
			query.Set(name, value)
		}
	}
	for _, state := range f.States {
		set("state", state)
	}
	set("text", p.Text)
	set("schedule", p.Schedule)
	set("jobId", f.JobID)
	set("pool", f.Pool)
	set("kind", f.Kind)
	set("trigger", f.Trigger)
	set("faultCode", f.FaultCode)
	set("error", f.Error)
	set("label", f.Label)
	if f.Skipped != nil {
		set("skipped", strconv.FormatBool(*f.Skipped))
	}
	for name, at := range map[string]time.Time{"createdAfter": f.CreatedAfter, "createdBefore": f.CreatedBefore} {
		if !at.IsZero() {
			set(name, at.Format(time.RFC3339Nano))
		}
	}
	if p.Limit > 0 {
		set("limit", strconv.Itoa(p.Limit))
	}
	set("cursor", p.Cursor)
	return query
}

// Events reads all events of a task with a number greater than after, in order.
func (c *Client) Events(ctx context.Context, taskID string, after int) ([]contract.TaskEvent, error) {
	events := []contract.TaskEvent{}
	for {
		what := call{method: http.MethodGet, path: taskPath(taskID, "events"), repeat: true}
		if after > 0 {
			what.query = url.Values{"after": {strconv.Itoa(after)}}
		}
		var page contract.TaskEvents
		if _, err := c.do(ctx, what, &page); err != nil {
			return nil, err
		}
		events = slices.Concat(events, page.Events)
		if page.NextAfter <= after {
			return events, nil
		}
		after = page.NextAfter
	}
}
