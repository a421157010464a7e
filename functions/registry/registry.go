// Package registry serves /v1/artifacts, the content-addressed documents of a tenant, and
// /v1/catalog, its models.
//
// A creation is durable before its response. A response with content uses one small buffer for
// content of any size. It is either complete or its connection is closed.
package registry

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/app/artifacts"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/artifact"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// Page lengths.
const (
	pageLimit   = 1000
	pageDefault = 50
)

// Routes returns the routes of artifacts.
func Routes(svc *artifacts.Registry) []httpkit.Route {
	return []httpkit.Route{
		{
			Method: http.MethodPost, Pattern: "/v1/artifacts", Access: httpkit.ForClients, Scope: access.RunsWrite,
			Query:  describing,
			Handle: func(w http.ResponseWriter, r *http.Request) error { return create(svc, w, r) },
		},
		httpkit.ForClient(http.MethodGet, "/v1/artifacts", access.RunsRead, httpkit.On(svc, list), "cursor", "limit", "kind", "tag", "parent"),
		httpkit.ForClient(http.MethodGet, "/v1/artifacts/{artifact_id}", access.RunsRead, httpkit.On(svc, get), "content"),
	}
}

func create(svc *artifacts.Registry, w http.ResponseWriter, r *http.Request) error {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != httpkit.TypeJSON { //nolint:errcheck // it is checked again
		return createBytes(svc, w, r)
	}
	if r.URL.RawQuery != "" {
		return fault.Invalid("", "a JSON document describes itself, want no query parameters")
	}
	document, err := httpkit.ReadDocument(w, r, artifact.MaxSize, httpkit.TypeJSON)
	if err != nil {
		return err
	}
	var body contract.ArtifactRequest
	if err := httpkit.ParseJSON(document, &body); err != nil {
		return err
	}
	return store(svc, w, r, body, nil)
}

// store creates an artifact and writes the response.
func store(svc *artifacts.Registry, w http.ResponseWriter, r *http.Request, body contract.ArtifactRequest, content *artifact.Bytes) error {
	in, err := api.NewArtifact(body)
	if err != nil {
		return err
	}
	in.Bytes = content
	who := httpkit.CallerOf(r.Context())
	a, existing, err := svc.Create(r.Context(), who.Tenant, who.Subject, in)
	if err != nil {
		return fmt.Errorf("cannot create the artifact: %w", err)
	}
	status := http.StatusCreated
	if existing {
		status = http.StatusOK
	}
	w.Header().Set("Location", "/v1/artifacts/"+a.ID)
	return httpkit.WriteJSON(w, status, api.ArtifactCreated(a))
}

func list(svc *artifacts.Registry, w http.ResponseWriter, r *http.Request) error {
	most, err := httpkit.IntQuery(r, "limit", 1, pageLimit, pageDefault)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	filter := artifact.Filter{Kind: query.Get("kind"), Tag: query.Get("tag"), Parent: artifact.ParseID(query.Get("parent"))}
	if err := check(query, filter); err != nil {
		return err
	}
	found, next, err := svc.List(r.Context(), httpkit.CallerOf(r.Context()), filter, port.Page{Cursor: query.Get("cursor"), Limit: most})
	if err != nil {
		return fmt.Errorf("cannot list the artifacts: %w", err)
	}
	page := contract.ArtifactList{Artifacts: make([]contract.ArtifactSummary, len(found)), NextCursor: next}
	for i, a := range found {
		page.Artifacts[i] = api.ArtifactSummary(a)
	}
	return httpkit.WriteJSON(w, http.StatusOK, page)
}

func check(given url.Values, f artifact.Filter) error {
	switch {
	case given.Has("kind") && !artifact.ValidKind(f.Kind):
		return fault.Invalid("kind", "malformed kind, want 1 to 63 lower-case letters, digits, dots, hyphens or underscores")
	case given.Has("tag") && !artifact.ValidTag(f.Tag):
		return fault.Invalid("tag", "malformed tag, want 1 to %d printable ASCII characters without spaces", artifact.MaxTag)
	case given.Has("parent") && !artifact.ValidID(f.Parent):
		return fault.Invalid("parent", "malformed parent, want the id of an artifact: 64 hexadecimal digits")
	}
	return nil
}

// get writes the content of an artifact of bytes, or the record of a JSON document with its
// content. With content=false it writes only the record.
func get(svc *artifacts.Registry, w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	who, id := httpkit.CallerOf(ctx), r.PathValue("artifact_id")
	if r.URL.Query().Has("content") {
		if whole, err := httpkit.BoolQuery(r, "content"); err != nil {
			return err
		} else if !whole {
			a, err := svc.Record(ctx, who, id)
			if err != nil {
				return fmt.Errorf("cannot read the artifact: %w", err)
			}
			w.Header().Set("Cache-Control", cacheControl)
			return httpkit.WriteJSON(w, http.StatusOK, api.ArtifactSummary(a))
		}
	}
	a, err := svc.Record(ctx, who, id)
	if err != nil {
		return fmt.Errorf("cannot read the artifact: %w", err)
	}
	if a.MediaType != "" {
		return sendBytes(svc, w, r, a)
	}
	return sendDocument(svc, w, r, a)
}

// cacheControl is the Cache-Control of content, which can expire.
const cacheControl = "private, no-cache"

// sendDocument writes the record of an artifact with its content as the last member.
func sendDocument(svc *artifacts.Registry, w http.ResponseWriter, r *http.Request, a artifact.Artifact) error {
	content, err := svc.Open(r.Context(), a, port.Span{})
	if err != nil {
		return fmt.Errorf("cannot read the artifact: %w", err)
	}
	defer func() { _ = content.Close() }() // it was read as far as required
	const place = "null"
	shell, err := httpkit.JSON(contract.Artifact{ArtifactSummary: api.ArtifactSummary(a), Content: []byte(place)})
	if err != nil {
		return err
	}
	shell = bytes.TrimSuffix(bytes.TrimSpace(shell), []byte(place+"}"))
	header := w.Header()
	header.Set("Cache-Control", cacheControl)
	header.Set("Content-Type", httpkit.TypeJSON)
	size := int64(len(shell)) + a.Size + 1
	header.Set("Content-Length", strconv.FormatInt(size, 10))
	send(w, r, a, http.StatusOK, size, io.MultiReader(bytes.NewReader(shell), io.LimitReader(content, a.Size), strings.NewReader("}")))
	return nil
}

// send writes a body of size bytes with the headers that are set.
func send(w http.ResponseWriter, r *http.Request, a artifact.Artifact, status int, size int64, body io.Reader) {
	ctx := r.Context()
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return
	}
	n, err := io.Copy(w, body)
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		httpkit.Log(ctx).LogAttrs(ctx, slog.LevelWarn, "artifact aborted", slog.String("artifact", a.ID), slog.String("error", err.Error()))
		panic(http.ErrAbortHandler)
	}
}
