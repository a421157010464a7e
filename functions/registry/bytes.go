package registry

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/sortie-dev/sortie/shared/app/artifacts"
	"github.com/sortie-dev/sortie/shared/domain/artifact"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// FunctionLimit is the size in bytes of the largest body in the input of a Lambda function.
const FunctionLimit = httpkit.WorkerBodyLimit

// describing are the query parameters that describe content other than JSON. They have the
// names and the rules of the members of a JSON document. Headers are unsuitable, because their
// values are ASCII and metadata are any JSON.
var describing = []string{"kind", "tags", "parent", "metadata"}

// createBytes creates an artifact from the bytes of the body.
func createBytes(svc *artifacts.Registry, w http.ResponseWriter, r *http.Request) (err error) {
	mediaType, err := artifact.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return httpkit.UnsupportedType(err.Error())
	}
	body, err := description(r.URL.Query())
	if err != nil {
		return err
	}
	content, err := httpkit.ReadBytes(w, r, svc.Limit())
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }() // it was written, or is not needed
	return store(svc, w, r, body, &artifact.Bytes{MediaType: mediaType, Content: content, Size: content.Size})
}

// description returns the description of an artifact in the query.
func description(query url.Values) (contract.ArtifactRequest, error) {
	body := contract.ArtifactRequest{Kind: query.Get("kind")}
	if query.Has("tags") {
		body.Tags = strings.Split(query.Get("tags"), " ")
	}
	if query.Has("parent") {
		parent := query.Get("parent")
		body.Parent = &parent
	}
	if !query.Has("metadata") {
		return body, nil
	}
	text := []byte(query.Get("metadata"))
	if !json.Valid(text) {
		return body, fault.Invalid("metadata", "malformed metadata, want a JSON object")
	}
	err := httpkit.ParseJSON(append(append([]byte(`{"metadata":`), text...), '}'), &body)
	return body, err
}

// sendBytes writes content, or a part of it, as an attachment, so that browsers do not display
// any media type.
func sendBytes(svc *artifacts.Registry, w http.ResponseWriter, r *http.Request, a artifact.Artifact) error {
	etag := `"` + a.ID + `"`
	header := w.Header()
	header.Set("Cache-Control", cacheControl)
	header.Set("Content-Type", a.Type())
	header.Set("Content-Disposition", "attachment")
	header.Set("ETag", etag)
	if list := r.Header.Get("If-None-Match"); list != "" && httpkit.Matches(list, etag, true) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	part, err := httpkit.PartOf(r, etag, a.Size)
	if err != nil {
		return err
	}
	span := part.Span
	if part.Whole {
		span = port.Span{}
	}
	content, err := svc.Open(r.Context(), a, span)
	if err != nil {
		return fmt.Errorf("cannot read the artifact: %w", err)
	}
	defer func() { _ = content.Close() }() // it was read as far as required
	send(w, r, a, part.Describe(header), part.Span.Length, io.LimitReader(content, part.Span.Length))
	return nil
}
