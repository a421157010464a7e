package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/sortie-dev/sortie/local/twin/proof"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Run starts a run of a program. document is the JSON of a job without id and schedule; its
// input is the standard input in base64. key is the Idempotency-Key, which makes the call safe
// to repeat. If the connection is refused, it fails at once.
func (c *Client) Run(ctx context.Context, document json.RawMessage, key string) (contract.RunAccepted, error) {
	var accepted contract.RunAccepted
	err := c.submit(ctx, call{
		method: http.MethodPost, path: "v1/runs", body: document, header: http.Header{"Idempotency-Key": {key}},
	}, &accepted)
	return accepted, err
}

// Task reads a task. The id is a task id or a run id.
func (c *Client) Task(ctx context.Context, id string) (contract.Task, error) {
	return ask[contract.Task](ctx, c, call{method: http.MethodGet, path: "v1/runs/" + url.PathEscape(id), repeat: true})
}

// ChildrenPage selects a page of the children of a run. The zero value is the first page, of the
// server's default size.
type ChildrenPage struct {
	State, Cursor string
	Limit         int
}

// Children reads a page of the children of a run, in the order of their items.
func (c *Client) Children(ctx context.Context, id string, page ChildrenPage) (contract.RunChildren, error) {
	query := url.Values{}
	for name, value := range map[string]string{"state": page.State, "cursor": page.Cursor} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if page.Limit > 0 {
		query.Set("limit", strconv.Itoa(page.Limit))
	}
	return ask[contract.RunChildren](ctx, c, call{method: http.MethodGet, path: "v1/runs/" + url.PathEscape(id) + "/children", query: query, repeat: true})
}

// submit sends a request with an Idempotency-Key and retries if the response was lost. If the
// connection is refused, it fails at once.
func (c *Client) submit(ctx context.Context, what call, to any) error {
	policy := c.policy(ctx)
	policy.Limit, policy.Final = max(submitOutage, c.outage), func(err error) bool {
		err = c.failure(ctx, err)
		u, lost := errors.AsType[*Unreachable](err)
		_, other := errors.AsType[*proof.Error](err)
		return other || lost && u.Refused
	}
	return c.failure(ctx, c.api.Retry(ctx, policy, func() error {
		_, err := c.once(ctx, what, to)
		return err
	}))
}
