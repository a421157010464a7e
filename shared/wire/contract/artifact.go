package contract

import "encoding/json"

// ArtifactRequest is the body of POST /v1/artifacts. The contract of the control plane uses
// snake_case.
type ArtifactRequest struct {
	Kind    string          `json:"kind"`
	Content json.RawMessage `json:"content"`
	Tags    []string        `json:"tags,omitempty"`
	// Parent is the id of another artifact.
	Parent   *string         `json:"parent,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// ArtifactCreated is the response of POST /v1/artifacts.
type ArtifactCreated struct {
	ID        string   `json:"id"`
	Kind      string   `json:"kind"`
	Digest    string   `json:"digest"`
	CreatedMS int64    `json:"created_ms"`
	Tags      []string `json:"tags"`
}

// ArtifactSummary is an artifact in a list.
type ArtifactSummary struct {
	ArtifactCreated
	// MediaType is the media type of the content. Size is its number of bytes.
	MediaType string          `json:"media_type"`
	Size      int64           `json:"size"`
	Parent    *string         `json:"parent"`
	Metadata  json.RawMessage `json:"metadata"`
}

// Artifact is the response of GET /v1/artifacts/{artifact_id} for a JSON document. The content
// is the last member.
type Artifact struct {
	ArtifactSummary
	Content json.RawMessage `json:"content"`
}

// ArtifactList is the response of GET /v1/artifacts.
type ArtifactList struct {
	Artifacts []ArtifactSummary `json:"artifacts"`
	// NextCursor is the cursor of the next page. It is empty on the last page.
	NextCursor string `json:"next_cursor,omitempty"`
}
