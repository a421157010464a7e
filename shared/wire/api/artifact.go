package api

import (
	"encoding/json"

	"github.com/sortie-dev/sortie/shared/domain/artifact"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// NewArtifact converts a request for an artifact. The fault is InvalidRequest if the metadata
// is not an object, or if the parent is malformed.
func NewArtifact(in contract.ArtifactRequest) (artifact.Draft, error) {
	if len(in.Metadata) > 0 {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(in.Metadata, &object); err != nil || object == nil {
			return artifact.Draft{}, fault.Invalid("metadata", "malformed metadata, want a JSON object")
		}
	}
	a := artifact.Draft{Kind: in.Kind, Content: in.Content, Tags: in.Tags, Metadata: in.Metadata}
	if in.Parent != nil {
		if a.Parent = artifact.ParseID(*in.Parent); !artifact.ValidID(a.Parent) {
			return artifact.Draft{}, fault.Invalid("parent", "malformed parent, want the id of an artifact: 64 hexadecimal digits")
		}
	}
	return a, nil
}

// ArtifactCreated returns the response to the creation of an artifact.
func ArtifactCreated(a artifact.Artifact) contract.ArtifactCreated {
	return contract.ArtifactCreated{ID: a.ID, Kind: a.Kind, Digest: a.Digest(), CreatedMS: a.CreatedAt.UnixMilli(), Tags: append([]string{}, a.Tags...)}
}

// ArtifactSummary returns the wire form of an artifact without its content.
func ArtifactSummary(a artifact.Artifact) contract.ArtifactSummary {
	s := contract.ArtifactSummary{ArtifactCreated: ArtifactCreated(a), MediaType: a.Type(), Size: a.Size, Metadata: a.Metadata}
	if a.Parent != "" {
		s.Parent = &a.Parent
	}
	if len(s.Metadata) == 0 {
		s.Metadata = json.RawMessage("{}")
	}
	return s
}
