package artifact

import (
	"encoding/json"
	"io"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// Draft has the fields of an artifact that a client sets.
type Draft struct {
	// Kind is the kind of the content, for example "trace".
	Kind string
	// Content is a JSON value; empty if Bytes is set.
	Content json.RawMessage
	// Bytes is content that is not JSON; nil otherwise.
	Bytes *Bytes
	Tags  []string
	// Parent is the id of another artifact, which is kept as long as this one.
	Parent string
	// Metadata is a JSON object; nil is an empty one.
	Metadata json.RawMessage
}

// Bytes is content of Size bytes. MediaType is a result of ParseMediaType. Content may be read
// more than once.
type Bytes struct {
	MediaType string
	Content   io.ReaderAt
	Size      int64
}

// Reader returns a reader of the whole content.
func (b *Bytes) Reader() io.Reader { return io.NewSectionReader(b.Content, 0, b.Size) }

// Check returns an InvalidRequest fault for the first invalid field, or nil.
func (in Draft) Check() error {
	if !ValidKind(in.Kind) {
		return fault.Invalid("kind", "missing or malformed kind, want 1 to 63 lower-case letters, digits, dots, hyphens or underscores")
	}
	if len(in.Content) == 0 && in.Bytes == nil {
		return fault.Invalid("content", "missing content, want a JSON value")
	}
	if len(in.Tags) > MaxTags {
		return fault.Invalid("tags", "%d tags, want at most %d", len(in.Tags), MaxTags)
	}
	seen := map[string]bool{}
	for _, tag := range in.Tags {
		if !ValidTag(tag) || seen[tag] {
			return fault.Invalid("tags", "malformed or repeated tag %.40q, want 1 to %d printable ASCII characters without spaces", tag, MaxTag)
		}
		seen[tag] = true
	}
	if in.Parent != "" && !ValidID(in.Parent) {
		return fault.Invalid("parent", "malformed parent, want the id of an artifact: 64 hexadecimal digits")
	}
	if len(in.Metadata) > MaxMetadata {
		return fault.Invalid("metadata", "%d bytes of metadata, want at most %d", len(in.Metadata), MaxMetadata)
	}
	return nil
}
