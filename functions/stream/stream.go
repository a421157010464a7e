// Package stream serves GET /v1/events/stream (Server-Sent Events) and GET /v1/events/ws
// (WebSocket): the new events of a tenant.
//
// Both send the same messages: events with their cursors, the gap of a reader that connects too
// late, and the end of the stream with the delay before the next connection.
package stream

import (
	"net/http"

	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// headerLastID is the header with the cursor of a reader that reconnects.
const headerLastID = "Last-Event-ID"

// Routes returns the route of Server-Sent Events.
func Routes(streams *stream.Streams, c clock.Clock) []httpkit.Route {
	watch := newWatch(c)
	return []httpkit.Route{
		route("/v1/events/stream", func(w http.ResponseWriter, r *http.Request) error {
			return serveSSE(streams, watch, w, r)
		}, "as"),
	}
}

// SocketRoutes returns the route of WebSockets, for servers that support hijacking of
// connections.
func SocketRoutes(streams *stream.Streams, c clock.Clock) []httpkit.Route {
	watch := newWatch(c)
	return []httpkit.Route{
		route(SocketPath, func(w http.ResponseWriter, r *http.Request) error {
			return serveSocket(streams, watch, w, r)
		}),
	}
}

func route(pattern string, handle httpkit.Handler, query ...string) httpkit.Route {
	return httpkit.Route{
		Method: http.MethodGet, Pattern: pattern, Access: httpkit.ForReaders, Scope: access.EventsRead,
		Query: append(append(api.FilterParameters(), "after", "gap"), query...), Handle: handle,
	}
}

// parse reads the query parameters that both routes share.
func parse(r *http.Request) (q stream.Query, err error) {
	query := r.URL.Query()
	if q.Filter, err = api.QueryFilter(query); err != nil {
		return q, err
	}
	q.After, q.Parameter = stream.Latest, "after"
	if query.Has("after") {
		q.After = query.Get("after")
	}
	if last := r.Header.Get(headerLastID); last != "" {
		q.After, q.Parameter = last, headerLastID
	}
	if q.FailOnGap, err = choice(r, "gap", "fail"); err != nil {
		return q, err
	}
	return q, nil
}

// choice reports whether a parameter is present. Its only valid value is value.
func choice(r *http.Request, name, value string) (bool, error) {
	query := r.URL.Query()
	if query.Has(name) && query.Get(name) != value {
		return false, fault.Invalid(name, "invalid %s, want %s or no parameter", name, value)
	}
	return query.Has(name), nil
}
