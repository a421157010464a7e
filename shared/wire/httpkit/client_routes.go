package httpkit

import (
	"net/http"

	"github.com/sortie-dev/sortie/shared/domain/access"
)

// ForClient returns a route for clients with the scope. query are the allowed query parameters.
func ForClient(method, pattern string, scope access.Scope, handle Handler, query ...string) Route {
	return Route{Method: method, Pattern: pattern, Access: ForClients, Scope: scope, Query: query, Handle: handle}
}

// On returns the handler of a function that serves with a use case.
func On[S any](svc S, serve func(S, http.ResponseWriter, *http.Request) error) Handler {
	return func(w http.ResponseWriter, r *http.Request) error { return serve(svc, w, r) }
}

// ClientRoutes returns a function like ForClient whose handlers are called with the use case svc.
func ClientRoutes[S any](svc S) func(
	method, pattern string, scope access.Scope, serve func(S, http.ResponseWriter, *http.Request) error, query ...string,
) Route {
	return func(method, pattern string, scope access.Scope, serve func(S, http.ResponseWriter, *http.Request) error, query ...string) Route {
		return ForClient(method, pattern, scope, On(svc, serve), query...)
	}
}
