package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Explain explains why a run is in its state. The id is a task id or a run id.
func (c *Client) Explain(ctx context.Context, id string) (contract.Explanation, error) {
	return ask[contract.Explanation](ctx, c, call{method: http.MethodGet, path: "v1/runs/" + url.PathEscape(id) + "/explain", repeat: true})
}

// ExplainJob explains why a job has not fired.
func (c *Client) ExplainJob(ctx context.Context, id string) (contract.JobExplanation, error) {
	return ask[contract.JobExplanation](ctx, c, call{method: http.MethodGet, path: jobPath(id, "explain"), repeat: true})
}

// Plan explains a run without creating it. request is the document of Run, or a
// contract.PlanJobRequest.
func (c *Client) Plan(ctx context.Context, request any) (contract.Plan, error) {
	return ask[contract.Plan](ctx, c, call{method: http.MethodPost, path: "v1/runs:plan", body: request, repeat: true})
}
