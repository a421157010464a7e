// Package download serves /download/{task_id}: GET and HEAD stream an output,
// DELETE deletes it before it expires.
//
// A response uses one buffer of 64 KiB for an output of any size. It is either complete or its
// connection is closed, so that no client mistakes a part for the whole. After a complete
// download the output is stored for a shorter time, unless the client retains it.
package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/shared/app/about"
	"github.com/sortie-dev/sortie/shared/app/downloads"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// bufferSize is the size of a download's buffer in bytes.
const bufferSize = 64 << 10

// noteLimit is the time limit of the commit after a download. The client may
// have disconnected by then.
const noteLimit = 10 * time.Second

// Routes returns the routes of downloads.
func Routes(svc *downloads.Downloads) []httpkit.Route {
	const pattern = "/download/{task_id}"
	return []httpkit.Route{
		{
			Method: http.MethodGet, Pattern: pattern, Access: httpkit.ForClients, Scope: access.RunsRead, Query: []string{"retain"},
			Handle: func(w http.ResponseWriter, r *http.Request) error { return download(svc, w, r) },
		},
		{
			Method: http.MethodDelete, Pattern: pattern, Access: httpkit.ForClients, Scope: access.RunsWrite,
			Handle: func(w http.ResponseWriter, r *http.Request) error { return remove(svc, w, r) },
		},
	}
}

func remove(svc *downloads.Downloads, w http.ResponseWriter, r *http.Request) error {
	if err := svc.DeleteOutput(r.Context(), httpkit.CallerOf(r.Context()), r.PathValue("task_id")); err != nil {
		return fmt.Errorf("cannot delete the output: %w", err)
	}
	return httpkit.WriteRemoved(w)
}

func download(svc *downloads.Downloads, w http.ResponseWriter, r *http.Request) error {
	retain, err := httpkit.BoolQuery(r, "retain")
	if err != nil {
		return err
	}
	d, err := svc.Output(r.Context(), httpkit.CallerOf(r.Context()), r.PathValue("task_id"))
	if err != nil {
		return fmt.Errorf("cannot find the output: %w", err)
	}
	header := w.Header()
	if d.Output.ETag != "" {
		header.Set("ETag", d.Output.ETag)
	}
	header.Set("Cache-Control", "private, no-cache")
	done, err := precondition(w, r, d)
	if done || err != nil {
		return err
	}
	if d.RedirectTo != "" && r.Method != http.MethodHead {
		header.Set("Cache-Control", "no-store")
		header.Set("Location", d.RedirectTo)
		w.WriteHeader(http.StatusFound)
		return nil
	}
	part, err := httpkit.PartOf(r, d.Output.ETag, d.Output.Size)
	if err != nil {
		return err
	}
	header.Set("Content-Type", d.ContentType)
	header.Set("Content-Disposition", d.Disposition)
	status := part.Describe(header)
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	return send(svc, w, r, d, part, status, retain)
}

// precondition handles conditional requests in the order of RFC 9110, §13.2.2.
func precondition(w http.ResponseWriter, r *http.Request, d downloads.Downloadable) (done bool, err error) {
	etag := d.Output.ETag
	if list := r.Header.Get("If-Match"); list != "" && !httpkit.Matches(list, etag, false) {
		return true, httpkit.PreconditionFailed("the output does not match If-Match")
	}
	if list := r.Header.Get("If-None-Match"); list != "" && httpkit.Matches(list, etag, true) {
		w.WriteHeader(http.StatusNotModified)
		return true, nil
	}
	return false, nil
}

// send streams the range, and records a download of the last byte unless retain. After the status was sent, an error closes the connection.
func send(svc *downloads.Downloads, w http.ResponseWriter, r *http.Request, d downloads.Downloadable, p httpkit.Part, status int, retain bool) error {
	ctx := r.Context()
	span := p.Span
	if p.Whole {
		span = port.Span{}
	}
	body, err := svc.Open(ctx, d, span)
	if err != nil {
		return fmt.Errorf("cannot read the output: %w", err)
	}
	defer func() { _ = body.Close() }() // The object was read as far as required.
	w.WriteHeader(status)
	if err := pass(w, body, p.Span.Length); err != nil {
		httpkit.Log(ctx).LogAttrs(ctx, slog.LevelWarn, "download aborted",
			append(about.Attributes(&d.Run), slog.String("error", err.Error()))...)
		panic(http.ErrAbortHandler)
	}
	if p.Last() && !retain && ctx.Err() == nil {
		note(ctx, svc, d)
	}
	return nil
}

// pass copies exactly size bytes and flushes them.
func pass(w http.ResponseWriter, body io.Reader, size int64) error {
	n, err := io.CopyBuffer(w, io.LimitReader(body, size), make([]byte, bufferSize))
	switch {
	case err != nil:
		return err
	case n < size:
		return fault.New(fault.Unavailable, "the object store returned %d of %d bytes", n, size)
	}
	if err := http.NewResponseController(w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("cannot send the last bytes: %w", err)
	}
	return nil
}

// note records the download. The client already has the output, so an error is
// only logged; the output is then stored for its full time.
func note(ctx context.Context, svc *downloads.Downloads, d downloads.Downloadable) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteLimit)
	defer cancel()
	if err := svc.Downloaded(ctx, d); err != nil {
		httpkit.Log(ctx).LogAttrs(ctx, slog.LevelWarn, "cannot record a download",
			append(about.Attributes(&d.Run), slog.String("error", err.Error()))...)
	}
}
