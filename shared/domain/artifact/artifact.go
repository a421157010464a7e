// Package artifact defines artifacts: content-addressed documents of tenants.
//
// The id of an artifact is the SHA-256 of its content. A JSON value is first converted to
// canonical JSON (RFC 8785); other content is hashed as it is. The same content always has the
// same id. A parent is kept as long as it has children. The package stores nothing, and times
// are arguments.
package artifact

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gowebpki/jcs"
)

// The limits of an artifact.
const (
	// MaxSize is the maximum size of a request with a JSON document, in bytes. With every
	// character escaped, its body must fit into the input of a Lambda function (6 MiB).
	MaxSize = 2 << 20
	// MaxMetadata is the maximum size of the metadata in bytes.
	MaxMetadata = 16 << 10
	MaxTags     = 32
	// MaxTag is the maximum length of a tag: "session:" and the longest session id.
	MaxTag = 136
)

// State is the state of an artifact.
type State string

// The states.
const (
	// Writing: the content may not be stored yet. Clients do not see the artifact. A repeated
	// request completes it. A sweep removes it after WritingLimit.
	Writing State = "writing"
	// Stored: the content is in the bucket.
	Stored State = "stored"
	// Removing: a sweep deletes the content, then the record. Clients do not see the artifact.
	Removing State = "removing"
)

// WritingLimit is the longest time that an artifact stays Writing.
const WritingLimit = time.Hour

// Artifact is the record of an artifact.
type Artifact struct {
	Tenant   string          `json:"tenant"`
	ID       string          `json:"id"`
	State    State           `json:"state"`
	Kind     string          `json:"kind"`
	Tags     []string        `json:"tags,omitempty"`
	Parent   string          `json:"parent,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// MediaType is the media type of the content; empty for JSON. See Type.
	MediaType string    `json:"mediaType,omitempty"`
	Size      int64     `json:"size"`
	Key       string    `json:"key"` // object key of the content in the bucket
	CreatedAt time.Time `json:"createdAt"`
	CreatedBy string    `json:"createdBy,omitempty"`
	// ExpiresAt is the time from which a sweep may remove the artifact.
	ExpiresAt time.Time `json:"expiresAt"`
	// Counted: the parent counts this artifact among its children.
	Counted bool `json:"counted,omitempty"`
	// Children is the number of artifacts whose parent this one is.
	Children int `json:"children,omitempty"`
}

// TypeJSON is the media type of the artifacts that are JSON values.
const TypeJSON = "application/json"

// Type returns the media type of the content.
func (a Artifact) Type() string { return cmp.Or(a.MediaType, TypeJSON) }

// Digest returns "sha256:" and the id.
func (a Artifact) Digest() string { return "sha256:" + a.ID }

// Prefixes of labels; see Labels. The empty label selects all artifacts.
const (
	labelKind   = "kind:"
	labelTag    = "tag:"
	labelParent = "parent:"
)

// Labels returns the labels under which the store lists the artifact. An artifact in the state
// Writing has none. One in the state Removing keeps its labels.
func (a Artifact) Labels() []string {
	if a.State == Writing {
		return nil
	}
	labels := []string{"", labelKind + a.Kind}
	for _, tag := range a.Tags {
		labels = append(labels, labelTag+tag)
	}
	if a.Parent != "" {
		labels = append(labels, labelParent+a.Parent)
	}
	return labels
}

// Filter selects artifacts. Empty fields select all.
type Filter struct{ Kind, Tag, Parent string }

// Label returns the label whose list contains every selected artifact. If several fields are
// set, the order of preference is Parent, Tag, Kind.
func (f Filter) Label() string {
	switch {
	case f.Parent != "":
		return labelParent + f.Parent
	case f.Tag != "":
		return labelTag + f.Tag
	case f.Kind != "":
		return labelKind + f.Kind
	}
	return ""
}

// Selects reports whether the artifact is Stored and matches all fields of f.
func (f Filter) Selects(a Artifact) bool {
	return a.State == Stored && (f.Kind == "" || a.Kind == f.Kind) && (f.Parent == "" || a.Parent == f.Parent) &&
		(f.Tag == "" || slices.Contains(a.Tags, f.Tag))
}

// Collect returns an expired artifact in the state Removing. If the artifact is Stored and has
// children, Collect extends its expiry to now plus retention instead. changed reports whether
// the caller must store the record. It is false if the artifact has not expired or is already
// Removing.
func (a Artifact) Collect(now time.Time, retention time.Duration) (after Artifact, changed bool) {
	switch {
	case a.State == Removing || now.Before(a.ExpiresAt):
		return a, false
	case a.State == Stored && a.Children > 0:
		a.ExpiresAt = now.Add(retention)
	default:
		a.State = Removing
	}
	return a, true
}

// Renew sets the expiry to now plus retention, if that extends it by more than an eighth of
// retention. worth reports whether it did, so that the caller must store the record.
func (a Artifact) Renew(now time.Time, retention time.Duration) (after Artifact, worth bool) {
	until := now.Add(retention)
	worth = until.Sub(a.ExpiresAt) > retention/8
	if worth {
		a.ExpiresAt = until
	}
	return a, worth
}

// Canonical returns a JSON value in canonical form (RFC 8785), and the SHA-256 of that form
// in hexadecimal. It returns an error unless content is one JSON value.
func Canonical(content []byte) (canonical []byte, id string, err error) {
	if !json.Valid(content) {
		return nil, "", errors.New("the content is not one JSON value")
	}
	// The library accepts only objects and arrays, so the value is wrapped in an array.
	wrapped, err := jcs.Transform(slices.Concat([]byte("["), content, []byte("]")))
	if err != nil {
		return nil, "", fmt.Errorf("the content has no canonical form: %w", err)
	}
	canonical = bytes.TrimSuffix(bytes.TrimPrefix(wrapped, []byte("[")), []byte("]"))
	sum := sha256.Sum256(canonical)
	return canonical, hex.EncodeToString(sum[:]), nil
}

// IDOf reads all content, which is not JSON, and returns its id.
func IDOf(content io.Reader) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, content); err != nil {
		return "", fmt.Errorf("cannot read the content: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// ParseMediaType returns the normalized media type of content that is not JSON. It refuses
// JSON and the types of HTML forms. Clients such as curl send a form type by default, and the
// body of a form is not the content itself.
func ParseMediaType(text string) (string, error) {
	kind, parameters, err := mime.ParseMediaType(text)
	switch {
	case err != nil || len(text) > maxMediaType || !strings.Contains(kind, "/"):
		return "", fmt.Errorf("malformed media type, want one such as application/pdf of at most %d characters", maxMediaType)
	case kind == TypeJSON, kind == "multipart/form-data", kind == "application/x-www-form-urlencoded":
		return "", fmt.Errorf("%s is not the media type of the content, want one such as application/octet-stream", kind)
	}
	return mime.FormatMediaType(kind, parameters), nil
}

// maxMediaType is the maximum length of a media type with its parameters.
const maxMediaType = 255

var (
	kindPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	idPattern   = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// ValidKind reports whether a text can be the kind of an artifact.
func ValidKind(text string) bool { return kindPattern.MatchString(text) }

// ValidID reports whether a text can be the id of an artifact.
func ValidID(text string) bool { return idPattern.MatchString(text) }

// ParseID returns the id without the prefix "sha256:" of a digest. It does not validate the id.
func ParseID(text string) string { return strings.TrimPrefix(text, "sha256:") }

// ValidTag reports whether a text can be a tag: 1 to MaxTag printable ASCII
// characters without spaces.
func ValidTag(text string) bool {
	return text != "" && len(text) <= MaxTag && !strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' })
}
