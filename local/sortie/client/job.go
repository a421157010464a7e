package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// Job is a stored job with its entity tag.
type Job struct {
	api.JobAnswer
	Tag string `json:"-"`
	// Warnings are the sentences of the server about parts that are probably not intended. Each
	// begins with the field.
	Warnings []string `json:"-"`
}

// Job reads a job.
func (c *Client) Job(ctx context.Context, id string) (Job, error) {
	return c.job(ctx, call{method: http.MethodGet, path: jobPath(id), repeat: true})
}

// JobVersion reads a version of a job.
func (c *Client) JobVersion(ctx context.Context, id string, version int64) (api.JobVersionAnswer, error) {
	var job api.JobVersionAnswer
	what := call{method: http.MethodGet, path: jobPath(id, "versions", strconv.FormatInt(version, 10)), repeat: true}
	_, err := c.do(ctx, what, &job)
	return job, err
}

// PutJob stores a job document of a content type if the stored job has the tag. An empty tag
// requires that the job does not exist. The call is safe to repeat: the same definition changes
// nothing, but the precondition fails then.
func (c *Client) PutJob(ctx context.Context, id string, document []byte, contentType, tag string) (Job, error) {
	return c.job(ctx, putJob(id, document, contentType, tag))
}

// PreviewJob returns the job that PutJob would store, without a tag. It stores nothing.
func (c *Client) PreviewJob(ctx context.Context, id string, document []byte, contentType, tag string) (Job, error) {
	what := putJob(id, document, contentType, tag)
	what.query, what.repeat = url.Values{"dryRun": {"true"}}, true
	return c.job(ctx, what)
}

func putJob(id string, document []byte, contentType, tag string) call {
	header := http.Header{"Content-Type": {contentType}}
	if tag == "" {
		header.Set("If-None-Match", "*")
	} else {
		header.Set("If-Match", tag)
	}
	return call{method: http.MethodPut, path: jobPath(id), header: header, raw: document}
}

// PauseJob stops the schedule of a job until ResumeJob.
func (c *Client) PauseJob(ctx context.Context, id string) (Job, error) {
	return c.job(ctx, call{method: http.MethodPost, path: jobPath(id, "pause"), body: struct{}{}, repeat: true})
}

// ResumeJob starts the schedule of a paused job.
func (c *Client) ResumeJob(ctx context.Context, id string) (Job, error) {
	return c.job(ctx, call{method: http.MethodPost, path: jobPath(id, "resume"), body: struct{}{}, repeat: true})
}

// ClearJob removes the recorded result of a job's last run.
func (c *Client) ClearJob(ctx context.Context, id string) (Job, error) {
	return c.job(ctx, call{method: http.MethodPost, path: jobPath(id, "clear"), body: struct{}{}, repeat: true})
}

// DeleteJob removes a job.
func (c *Client) DeleteJob(ctx context.Context, id string) error {
	_, err := ask[[]byte](ctx, c, call{method: http.MethodDelete, path: jobPath(id)})
	return err
}

// RunJob creates a run of a job. key is the Idempotency-Key, which makes the call safe
// to repeat.
func (c *Client) RunJob(ctx context.Context, id string, request contract.JobRunRequest, key string) (contract.RunAccepted, error) {
	return ask[contract.RunAccepted](ctx, c, call{
		method: http.MethodPost, path: jobPath(id, "runs"), header: http.Header{"Idempotency-Key": {key}}, body: request, repeat: true,
	})
}

// SendEvents starts the runs of CloudEvents. It is safe to repeat.
func (c *Client) SendEvents(ctx context.Context, id string, events []json.RawMessage) (contract.EventReceipts, error) {
	content, err := json.Marshal(events)
	if err != nil {
		return contract.EventReceipts{}, fmt.Errorf("cannot encode the events: %w", err)
	}
	return ask[contract.EventReceipts](ctx, c, call{
		method: http.MethodPost, path: jobPath(id, "events"), raw: content, repeat: true,
		header: http.Header{"Content-Type": {"application/cloudevents-batch+json"}},
	})
}

// BackfillJob creates the run of a backfill. existing reports that the time has a run already.
func (c *Client) BackfillJob(ctx context.Context, id string, request contract.JobRunRequest) (existing bool, err error) {
	var status int
	_, err = ask[contract.RunAccepted](ctx, c, call{method: http.MethodPost, path: jobPath(id, "runs"), body: request, repeat: true, status: &status})
	return status == http.StatusOK, err
}

// Jobs reads a page of jobs, ordered by id.
func (c *Client) Jobs(ctx context.Context, page Page) (contract.JobList, error) {
	return ask[contract.JobList](ctx, c, call{method: http.MethodGet, path: "v1/jobs", query: page.query(), repeat: true})
}

// JobRuns reads a page of the runs of a job, newest first.
func (c *Client) JobRuns(ctx context.Context, id string, page Page) (contract.JobRuns, error) {
	return ask[contract.JobRuns](ctx, c, call{method: http.MethodGet, path: jobPath(id, "runs"), query: page.query(), repeat: true})
}

func (c *Client) job(ctx context.Context, what call) (Job, error) {
	var job Job
	header, err := c.do(ctx, what, &job)
	if err == nil {
		job.Tag, job.Warnings = header.Get("ETag"), httpkit.Warnings(header)
	}
	return job, err
}

func jobPath(id string, more ...string) string {
	path := "v1/jobs/" + url.PathEscape(id)
	for _, part := range more {
		path += "/" + part
	}
	return path
}
