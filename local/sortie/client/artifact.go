package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// CreateArtifact stores a document. It is safe to repeat.
func (c *Client) CreateArtifact(ctx context.Context, in contract.ArtifactRequest) (contract.ArtifactCreated, error) {
	return ask[contract.ArtifactCreated](ctx, c, call{method: http.MethodPost, path: "v1/artifacts", body: in, repeat: true})
}

// Artifacts reads a page of the artifacts that match the query, the newest first.
func (c *Client) Artifacts(ctx context.Context, query url.Values) (contract.ArtifactList, error) {
	return ask[contract.ArtifactList](ctx, c, call{method: http.MethodGet, path: "v1/artifacts", query: query, repeat: true})
}

// ArtifactRecord reads an artifact without its content.
func (c *Client) ArtifactRecord(ctx context.Context, id string) (contract.ArtifactSummary, error) {
	return ask[contract.ArtifactSummary](ctx, c, call{method: http.MethodGet, path: "v1/artifacts/" + url.PathEscape(id), query: url.Values{"content": {"false"}}, repeat: true})
}

// Artifact reads an artifact that is a JSON document, with its content.
func (c *Client) Artifact(ctx context.Context, id string) (contract.Artifact, error) {
	return ask[contract.Artifact](ctx, c, call{method: http.MethodGet, path: "v1/artifacts/" + url.PathEscape(id), repeat: true})
}
