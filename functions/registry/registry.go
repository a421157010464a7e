// Package registry serves /v1/artifacts, the content-addressed documents of a tenant, and
// /v1/catalog, its models.
//
// A creation is durable before its response. A response with content uses one small buffer
// whatever the size of the content. It is either complete or its connection is closed.
package registry

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"

	"github.com/sortie-dev/sortie/shared/access"
	"github.com/sortie-dev/sortie/shared/api"
	"github.com/sortie-dev/sortie/shared/artifact"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/httpkit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
)

// Page lengths.
const (
	pageLimit   = 1000
	pageDefault = 50
)

// Routes returns the routes of artifacts.
func Routes(svc *orchestrator.Artifacts) []httpkit.Route {
	return []httpkit.Route{
		{
			Method: http.MethodPost, Pattern: "/v1/artifacts", Access: httpkit.ForClients, Scope: access.RunsWrite,
			Handle: func(w http.ResponseWriter, r *http.Request) error { return create(svc, w, r) },
		},
		{
			Method: http.MethodGet, Pattern: "/v1/artifacts", Access: httpkit.ForClients, Scope: access.RunsRead,
			Query:  []string{"cursor", "limit", "kind", "tag", "parent"},
			Handle: func(w http.ResponseWriter, r *http.Request) error { return list(svc, w, r) },
		},
		{
			Method: http.MethodGet, Pattern: "/v1/artifacts/{artifact_id}", Access: httpkit.ForClients, Scope: access.RunsRead,
			Handle: func(w http.ResponseWriter, r *http.Request) error { return get(svc, w, r) },
		},
	}
}

func create(svc *orchestrator.Artifacts, w http.ResponseWriter, r *http.Request) error {
	document, err := httpkit.ReadDocument(w, r, artifact.MaxSize, httpkit.TypeJSON)
	if err != nil {
		return err
	}
	var body contract.ArtifactRequest
	if err := httpkit.ParseJSON(document, &body); err != nil {
		return err
	}
	in, err := api.NewArtifact(body)
	if err != nil {
		return err
	}
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

func list(svc *orchestrator.Artifacts, w http.ResponseWriter, r *http.Request) error {
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
		return fault.Invalid("tag", "malformed tag, want 1 to 128 printable ASCII characters without spaces")
	case given.Has("parent") && !artifact.ValidID(f.Parent):
		return fault.Invalid("parent", "malformed parent, want the id of an artifact: 64 hexadecimal digits")
	}
	return nil
}

// get writes the record of an artifact with its content in the place of the last member.
func get(svc *orchestrator.Artifacts, w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	a, content, err := svc.Artifact(ctx, httpkit.CallerOf(ctx), r.PathValue("artifact_id"))
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
	header.Set("Cache-Control", "private, no-cache")
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.FormatInt(int64(len(shell))+a.Size+1, 10))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	n, err := io.Copy(w, io.MultiReader(bytes.NewReader(shell), io.LimitReader(content, a.Size)))
	if err == nil && n < int64(len(shell))+a.Size {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		_, err = w.Write([]byte("}"))
	}
	if err != nil {
		httpkit.Log(ctx).LogAttrs(ctx, slog.LevelWarn, "artifact aborted", slog.String("artifact", a.ID), slog.String("error", err.Error()))
		panic(http.ErrAbortHandler)
	}
	return nil
}
