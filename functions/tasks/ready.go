package tasks

import (
	"net/http"

	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// ReadyRoutes returns the route of the readiness probe. It responds with 200 only while the
// store accepts writes. version is the program's version.
func ReadyRoutes(ready *Readiness, version string) []httpkit.Route {
	return []httpkit.Route{{
		Method: http.MethodGet, Pattern: "/readyz", Access: httpkit.ForAll,
		Handle: func(w http.ResponseWriter, r *http.Request) error {
			if err := ready.Check(r.Context()); err != nil {
				return err
			}
			return httpkit.WriteJSON(w, http.StatusOK, contract.Health{Status: "ok", Version: version})
		},
	}}
}
