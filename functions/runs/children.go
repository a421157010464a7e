package runs

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/sortie-dev/sortie/shared/app/children"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// Page lengths.
const (
	pageLimit   = 1000
	pageDefault = 50
)

// ChildRoutes returns the route of the children of runs.
func ChildRoutes(svc *children.Reader) []httpkit.Route {
	return []httpkit.Route{{
		Method: http.MethodGet, Pattern: "/v1/runs/{run_id}/children", Access: httpkit.ForClients, Scope: access.RunsRead,
		Query:  []string{"state", "cursor", "limit"},
		Handle: func(w http.ResponseWriter, r *http.Request) error { return listChildren(svc, w, r) },
	}}
}

func listChildren(svc *children.Reader, w http.ResponseWriter, r *http.Request) error {
	limit, err := httpkit.IntQuery(r, "limit", 1, pageLimit, pageDefault)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	status := fan.Status(query.Get("state"))
	if query.Has("state") && !slices.Contains(fan.Statuses(), status) {
		return fault.Invalid("state", "unknown state, want one of %v", fan.Statuses())
	}
	page, err := svc.List(r.Context(), httpkit.CallerOf(r.Context()), r.PathValue("run_id"), children.Query{
		Status: status, Cursor: query.Get("cursor"), Limit: limit,
	})
	if err != nil {
		return fmt.Errorf("cannot list the children: %w", err)
	}
	return httpkit.WriteJSON(w, http.StatusOK, api.RunChildren(page))
}
