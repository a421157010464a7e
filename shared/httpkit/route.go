package httpkit

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/fault"
)

// Access says which credential a route takes.
type Access string

// The three kinds of routes.
const (
	// ForClients takes a client token; on loopback it may be left out.
	ForClients Access = "client"
	// ForWorkers takes a worker's token, which the handler verifies.
	ForWorkers Access = "worker"
	// ForAll takes none.
	ForAll Access = "none"
)

// Handler answers a request, or returns the error that is to be told. It
// returns nil, or panics with http.ErrAbortHandler, once it has begun to write.
type Handler func(w http.ResponseWriter, r *http.Request) error

// Route is one operation of the API. Pattern is a path as http.ServeMux has it,
// which is OpenAPI's spelling too: "/status/{task_id}". GET serves HEAD as well.
type Route struct {
	Method, Pattern string
	Access          Access
	// Query lists the parameters that may stand in the query. Any other, and one
	// that comes twice, is refused by name.
	Query  []string
	Handle Handler
}

// lookup finds the route's handler; a problem where there is none.
func (s *server) lookup(r *http.Request) error {
	clean := path.Clean(r.URL.Path) == r.URL.Path
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
		return fault.New(fault.NotFound, "there is nothing at this path; /openapi.json lists what there is")
	}
	allow := strings.Join(allowed, ", ")
	p := onlyHTTP(codeMethod, "", "the methods of this path are "+allow)
	p.Header.Set("Allow", allow)
	return p
}

// checkQuery refuses what the route does not know.
func (t Route) checkQuery(r *http.Request) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return fault.Invalid("", "the query cannot be read")
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains(t.Query, name) {
			return fault.Invalid(name, "there is no such query parameter here%s", t.knownQuery())
		}
		if len(values[name]) > 1 {
			return fault.Invalid(name, "the query parameter stands there %d times", len(values[name]))
		}
	}
	return nil
}

func (t Route) knownQuery() string {
	if len(t.Query) == 0 {
		return ""
	}
	return "; there is: " + strings.Join(t.Query, ", ")
}

// methodsOf lists the methods of the routes, sorted, with HEAD beside GET.
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
