package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/sortie-dev/sortie/shared/sdk/go/api"
)

// Create calls POST /v1/artifacts: it stores a JSON document under its SHA-256.
func (s Artifacts) Create(ctx context.Context, body *api.ArtifactRequest, options ...Option) (*api.ArtifactCreated, error) {
	return sendJSON[api.ArtifactCreated](ctx, s.t, call{method: http.MethodPost, path: "/v1/artifacts", body: bodyOf(body), repeatable: true}, options)
}

// Upload describes bytes that are stored as an artifact.
type Upload struct {
	Kind string
	// MediaType is the type of the bytes; empty means application/octet-stream.
	MediaType string
	Tags      []string
	// Parent is the id of another artifact.
	Parent   string
	Metadata map[string]any
}

// CreateBytes calls POST /v1/artifacts: it stores bytes under their SHA-256.
func (s Artifacts) CreateBytes(ctx context.Context, content []byte, description Upload, options ...Option) (*api.ArtifactCreated, error) {
	query := url.Values{}
	setText(query, "kind", description.Kind)
	setText(query, "tags", strings.Join(description.Tags, " "))
	setText(query, "parent", description.Parent)
	if description.Metadata != nil {
		text, err := json.Marshal(description.Metadata)
		if err != nil {
			return nil, fmt.Errorf("cannot encode the metadata: %w", err)
		}
		query.Set("metadata", string(text))
	}
	what := call{method: http.MethodPost, path: "/v1/artifacts", query: query, content: content, mediaType: description.MediaType, repeatable: true}
	if what.content == nil {
		what.content = []byte{}
	}
	if what.mediaType == "" {
		what.mediaType = "application/octet-stream"
	}
	return sendJSON[api.ArtifactCreated](ctx, s.t, what, options)
}

// Get calls GET /v1/artifacts/{artifact_id}: a JSON document with its description.
func (s Artifacts) Get(ctx context.Context, artifactID string, options ...Option) (*api.Artifact, error) {
	return sendJSON[api.Artifact](ctx, s.t, call{method: http.MethodGet, path: pathOf("/v1/artifacts/{artifact_id}", artifactID)}, options)
}

// Describe returns the description of an artifact, without its content.
func (s Artifacts) Describe(ctx context.Context, artifactID string, options ...Option) (*api.ArtifactSummary, error) {
	query := url.Values{"content": {"false"}}
	return sendJSON[api.ArtifactSummary](ctx, s.t, call{method: http.MethodGet, path: pathOf("/v1/artifacts/{artifact_id}", artifactID), query: query}, options)
}

// Open opens the content of an artifact that is not a JSON document.
func (s Artifacts) Open(ctx context.Context, artifactID string, options ...Option) (*Download, error) {
	what, err := s.t.prepare(call{method: http.MethodGet, path: pathOf("/v1/artifacts/{artifact_id}", artifactID), accept: "*/*"}, options)
	if err != nil {
		return nil, err
	}
	what.header.Set("Accept-Encoding", "identity")
	response, err := s.t.stream(ctx, what, max(what.timeout, silence)) //nolint:bodyclose // the caller closes the download
	if err != nil {
		return nil, err
	}
	return &Download{contentOf(response), response.Body}, nil
}
