// Package callback serves the calls of workers: started, heartbeat, logs and
// completed of the worker contract, and POST /callback/{task_id} of the export
// contract.
//
// A 200 means that the report is committed. A token authorizes one worker for one attempt and
// one of the two contracts. The token of CALLBACK_URL is a query parameter. Both tokens are
// accepted as Authorization: Bearer. Bodies are decoded leniently: a malformed detail does not
// reject the result of a worker, and a heartbeat with a refused body still counts as contact.
package callback

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/sortie-dev/sortie/shared/app/about"
	"github.com/sortie-dev/sortie/shared/app/logs"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// Routes returns the routes of workers. output takes what they send of their output.
func Routes(svc *runs.Workers, output *logs.Intake) []httpkit.Route {
	call := func(name string, handle func(*runs.Workers, http.ResponseWriter, *http.Request) error) httpkit.Route {
		return httpkit.Route{
			Method: http.MethodPost, Pattern: "/v1/tasks/{task_id}/" + name, Access: httpkit.ForWorkers,
			Handle: func(w http.ResponseWriter, r *http.Request) error { return handle(svc, w, r) },
		}
	}
	return []httpkit.Route{
		{
			Method: http.MethodPost, Pattern: "/callback/{task_id}", Access: httpkit.ForWorkers,
			Query:  []string{"token"},
			Handle: func(w http.ResponseWriter, r *http.Request) error { return callback(svc, w, r) },
		},
		call("started", started), call("heartbeat", heartbeat), call("logs", func(svc *runs.Workers, w http.ResponseWriter, r *http.Request) error {
			return takeOutput(svc, output, w, r)
		}), call("completed", completed),
	}
}

func callback(svc *runs.Workers, w http.ResponseWriter, r *http.Request) error {
	bearer, err := svc.AuthenticateCallback(r.Context(), tokenOf(r), r.PathValue("task_id"))
	if err != nil {
		return fmt.Errorf("cannot authenticate the worker: %w", err)
	}
	body, err := decode[contract.Callback](w, r, bearer)
	if err != nil {
		return err
	}
	report := func(r run.Run) (run.Report, error) { return api.Callback(r, body) }
	if err := svc.Callback(r.Context(), bearer, report); err != nil {
		return fmt.Errorf("cannot record the callback: %w", err)
	}
	return httpkit.WriteJSON(w, http.StatusOK, contract.CallbackReceived{Received: true})
}

// tokenOf returns the token of the query, as in CALLBACK_URL, or of the header. It returns ""
// if the two differ.
func tokenOf(r *http.Request) string {
	inQuery := r.URL.Query().Get("token")
	inHeader, present := httpkit.BearerToken(r)
	switch {
	case !present:
		return inQuery
	case inQuery == "" || inQuery == inHeader:
		return inHeader
	}
	return ""
}

// decode decodes the body of a worker's call and logs which of its fields are ignored.
func decode[T any](w http.ResponseWriter, r *http.Request, bearer runs.Bearer) (body T, err error) {
	ignored, err := httpkit.DecodeReport(w, r, &body)
	if len(ignored) > 0 {
		httpkit.Log(r.Context()).LogAttrs(r.Context(), slog.LevelWarn, "unusable optional fields of a worker's call are ignored",
			append(about.WorkerAttributes(bearer), slog.Any("fields", ignored))...)
	}
	return body, err
}
