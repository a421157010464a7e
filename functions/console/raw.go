package console

import (
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// sandbox is the Content-Security-Policy of content that a worker or a client wrote. A page made
// of it has no origin and no script.
const sandbox = "sandbox; default-src 'none'; frame-ancestors 'none'"

// rawQuery lists the query parameters of the API's resources that pages link to.
var rawQuery = []string{
	"after", "as", "attempt", "before", "by", "content", "createdAfter", "createdBefore", "cursor", "error", "faultCode", "from", "jobId", "kind", "label", "limit",
	"offset", "pool", "order", "parent", "results", "runId", "schedule", "skipped", "state", "stream", "tag", "taskId", "text", "to", "trigger", "type", "types", "version",
}

// rawPaths are the paths of the API that pages link to; one with a slash at the end means all
// paths below it.
var rawPaths = []string{"/v1/", "/download/", "/schemas/", "/.well-known/", "/openapi.json", "/healthz", "/readyz", "/metrics"}

// usagePath has another form with as=csv, because a link has no Accept header.
const usagePath = "/v1/usage"

// raw serves a resource of the API as the API returns it: the JSON of a page, a log, an output.
// What is neither JSON nor plain text is a download.
func (c *console) raw(w http.ResponseWriter, r *http.Request) error {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	v, err := c.begin(r.WithContext(ctx))
	if err != nil {
		return err
	}
	path := strings.TrimPrefix(r.URL.EscapedPath(), page.Prefix+"json")
	if !slices.ContainsFunc(rawPaths, func(open string) bool {
		return path == open || strings.HasSuffix(open, "/") && strings.HasPrefix(path, open)
	}) {
		return httpkit.NoSuchPath()
	}
	header := http.Header{}
	for _, name := range []string{"Accept", "Range", "If-None-Match", "If-Range", "Last-Event-ID"} {
		if values := r.Header.Values(name); len(values) > 0 && (name != "Accept" || !isPage(values[0])) {
			header[name] = values
		}
	}
	query := r.URL.Query()
	if path == usagePath && query.Get("as") == "csv" {
		header.Set("Accept", "text/csv")
		query.Del("as")
	}
	response, err := v.Call(http.MethodGet, path, query, nil, header)
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusBadRequest {
		return page.Read(response, nil)
	}
	defer func() { _ = response.Body.Close() }()
	to := w.Header()
	for _, name := range []string{"Content-Type", "Content-Length", "Content-Disposition", "Content-Range", "Accept-Ranges", "ETag", "Location", "X-Next-Cursor"} {
		if value := response.Header.Get(name); value != "" {
			to.Set(name, value)
		}
	}
	to.Set("Content-Security-Policy", sandbox)
	to.Set("Cache-Control", "no-store")
	if kind, _, err := mime.ParseMediaType(to.Get("Content-Type")); err != nil || kind != httpkit.TypeJSON && kind != "text/plain" {
		to.Set("Content-Disposition", attachment(to.Get("Content-Disposition")))
	}
	w.WriteHeader(response.StatusCode)
	if kind, _, _ := mime.ParseMediaType(to.Get("Content-Type")); kind == typeEventStream {
		signedIn, end := c.untilSignOut(v)
		defer end()
		release := context.AfterFunc(signedIn, stop)
		defer release()
		w = flushed{w, http.NewResponseController(w)}
	}
	_, _ = io.Copy(w, response.Body) // the reader has left, or the API ended the response early
	return nil
}

// typeEventStream is the content type of server-sent events.
const typeEventStream = "text/event-stream"

// flushed is a response that is sent as it is written.
type flushed struct {
	http.ResponseWriter
	conn *http.ResponseController
}

// Write implements http.ResponseWriter.
func (w flushed) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	if err == nil {
		if err = w.conn.Flush(); errors.Is(err, http.ErrNotSupported) {
			err = nil
		}
	}
	return n, err
}

// isPage reports whether an Accept header is that of a browser for a page.
func isPage(accept string) bool {
	kind, _, _ := mime.ParseMediaType(accept[:min(len(accept), len("text/html"))])
	return kind == "text/html"
}

// attachment returns a Content-Disposition that makes the browser store the content.
func attachment(given string) string {
	_, parameters, err := mime.ParseMediaType(given)
	if err != nil || parameters["filename"] == "" {
		return "attachment"
	}
	return cmp.Or(mime.FormatMediaType("attachment", map[string]string{"filename": parameters["filename"]}), "attachment")
}
