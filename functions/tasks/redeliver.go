package tasks

import (
	"net/http"

	"github.com/sortie-dev/sortie/shared/app/redelivery"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// RedeliveryRoutes returns the route that sends the failed notifications of a run again.
func RedeliveryRoutes(queries *runs.Queries, svc *redelivery.Redeliveries) []httpkit.Route {
	handle := func(w http.ResponseWriter, r *http.Request) error { return redeliver(queries, svc, w, r) }
	return []httpkit.Route{httpkit.ForClient(http.MethodPost, "/v1/runs/{run_id}/redeliver", access.RunsWrite, handle)}
}

// redeliver sends a failed notification of a run again, or all, and returns the run.
func redeliver(queries *runs.Queries, svc *redelivery.Redeliveries, w http.ResponseWriter, r *http.Request) error {
	var request contract.RedeliverActionRequest
	if err := httpkit.DecodeOptionalJSON(w, r, &request); err != nil {
		return err
	}
	if _, err := svc.Redeliver(r.Context(), httpkit.CallerOf(r.Context()), idOf(r), spec.EndAction(request.Action)); err != nil {
		return err
	}
	return task(queries, w, r)
}
