package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/sortie-dev/sortie/shared/contract"
)

// CreateArtifact stores a document. It is safe to repeat.
func (c *Client) CreateArtifact(ctx context.Context, in contract.ArtifactRequest) (a contract.ArtifactCreated, err error) {
	_, err = c.do(ctx, call{method: http.MethodPost, path: "v1/artifacts", body: in, repeat: true}, &a)
	return a, err
}

// Artifacts reads a page of the artifacts that match the query, the newest first.
func (c *Client) Artifacts(ctx context.Context, query url.Values) (list contract.ArtifactList, err error) {
	_, err = c.do(ctx, call{method: http.MethodGet, path: "v1/artifacts", query: query, repeat: true}, &list)
	return list, err
}

// ArtifactRecord reads an artifact without its content.
func (c *Client) ArtifactRecord(ctx context.Context, id string) (a contract.ArtifactSummary, err error) {
	_, err = c.do(ctx, call{method: http.MethodGet, path: "v1/artifacts/" + url.PathEscape(id), query: url.Values{"content": {"false"}}, repeat: true}, &a)
	return a, err
}

// Artifact reads an artifact that is a JSON document, with its content.
func (c *Client) Artifact(ctx context.Context, id string) (a contract.Artifact, err error) {
	_, err = c.do(ctx, call{method: http.MethodGet, path: "v1/artifacts/" + url.PathEscape(id), repeat: true}, &a)
	return a, err
}
