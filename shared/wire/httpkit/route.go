package httpkit

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// Access is the credential that a route requires.
type Access string

// The values of Access.
const (
	// ForClients requires a client token with the scope of the route. Programs on the server's
	// own host may omit it if no token is configured.
	ForClients Access = "client"
	// ForReaders requires a ticket in the query, or a client token as ForClients does.
	ForReaders Access = "reader"
	// ForWorkers requires a worker's token, which the handler verifies.
	ForWorkers Access = "worker"
	// ForAll requires no token.
	ForAll Access = "none"
)

// Handler serves a request, or returns an error to send as the response. Once it has started to
// write, it must return nil or panic with http.ErrAbortHandler.
type Handler func(w http.ResponseWriter, r *http.Request) error

// Route is an operation of the API. Pattern is a path of http.ServeMux, spelled as in OpenAPI:
// "/status/{task_id}". GET also serves HEAD.
type Route struct {
	Method, Pattern string
	Access          Access
	// Scope is the scope that a route for clients requires; empty for other routes.
	Scope access.Scope
	// Query lists the allowed query parameters. Unknown and repeated parameters are rejected by
	// name.
	Query []string
	// OwnCorrelationID: the response has a new correlation id, even if the request has one.
	OwnCorrelationID bool
	// Errors is the shape of error responses; nil means problem documents (RFC 9457).
	Errors ErrorShape
	// Fail, if not nil, writes the error responses itself, such as pages for browsers.
	Fail func(w http.ResponseWriter, r *http.Request, p *Problem)
	// Refused is called for each request that is refused, by the handler or before it, with the
	// code of the response. nil means that refusals are not counted.
	Refused func(ctx context.Context, code fault.Code, err error)
	Handle  Handler
}

// ErrorShape converts a problem to an error response of another API: its status, its headers in
// addition to those of the problem, and its JSON body.
type ErrorShape func(p *Problem) (status int, header http.Header, body any)

// lookup returns a problem if no route matches the request.
func (s *server) lookup(r *http.Request) error {
	cleaned := path.Clean(r.URL.Path)
	clean := r.URL.Path == cleaned || r.URL.Path == cleaned+"/" // a slash at the end is a path of its own
	if _, pattern := s.mux.Handler(r); clean && pattern != "" {
		return nil
	}
	var allowed []string
	for _, method := range s.methods {
		probe := *r
		probe.Method = method
		if _, pattern := s.mux.Handler(&probe); clean && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		return NoSuchPath()
	}
	allow := strings.Join(allowed, ", ")
	p := onlyHTTP(codeMethod, "", "method not allowed, want one of "+allow)
	p.unrouted = true
	p.Header.Set("Allow", allow)
	return p
}

// NoSuchPath returns the problem for a path that no route matches (404).
func NoSuchPath() *Problem {
	p := onlyHTTP(fault.NotFound, "", "unknown path; /openapi.json lists the paths")
	p.unrouted = true
	return p
}

// checkQuery rejects unknown and repeated query parameters.
func (t Route) checkQuery(r *http.Request) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return fault.Invalid("", "malformed query")
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains(t.Query, name) {
			return fault.Invalid(name, "unknown query parameter%s", t.knownQuery())
		}
		if len(values[name]) > 1 {
			return fault.Invalid(name, "query parameter occurs %d times, want one", len(values[name]))
		}
	}
	return nil
}

func (t Route) knownQuery() string {
	if len(t.Query) == 0 {
		return ""
	}
	return ", want one of " + strings.Join(t.Query, ", ")
}

// methodsOf returns the methods of the routes, sorted, with HEAD if there is GET.
func methodsOf(routes []Route) []string {
	var methods []string
	for _, t := range routes {
		methods = append(methods, t.Method)
		if t.Method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	slices.Sort(methods)
	return slices.Compact(methods)
}
