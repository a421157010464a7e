// Package callback is the front door of workers: started, heartbeat and completed
// of the worker contract, and the export contract's POST /callback/{task_id},
// which is the last of them in an older shape.
//
// A 200 means that what was said is committed, or was before. A token lets nobody
// but the worker of one attempt in, and the two contracts' tokens are not each
// other's: that of CALLBACK_URL stands in the query, or like the other one comes
// as Authorization: Bearer. Bodies are read leniently, because what a worker in
// the field has done is worth more than how it says so.
package callback

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sortie-dev/sortie/shared/api"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/httpkit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/run"
)

// Routes lists what this front door serves.
func Routes(svc *orchestrator.Workers) []httpkit.Route {
	call := func(name string, handle func(*orchestrator.Workers, http.ResponseWriter, *http.Request) error) httpkit.Route {
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
		call("started", started), call("heartbeat", heartbeat), call("completed", completed),
	}
}

func callback(svc *orchestrator.Workers, w http.ResponseWriter, r *http.Request) error {
	bearer, err := svc.AuthenticateCallback(r.Context(), tokenOf(r), r.PathValue("task_id"))
	if err != nil {
		return fmt.Errorf("cannot authenticate the worker: %w", err)
	}
	var body contract.Callback
	if err := httpkit.DecodeJSON(w, r, &body, httpkit.Lenient); err != nil {
		return err
	}
	if err := isObject("metrics", body.Metrics); err != nil {
		return err
	}
	report := func() (run.Report, error) { return api.Callback(bearer.TaskID, body) }
	if err := svc.Callback(r.Context(), bearer, report); err != nil {
		return fmt.Errorf("cannot take the callback: %w", err)
	}
	return httpkit.WriteJSON(w, http.StatusOK, contract.CallbackReceived{Received: true})
}

// tokenOf finds the token in the query, where CALLBACK_URL has it, or in the
// header. Two that differ are as good as none.
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

// isObject refuses what a worker may fill as it likes, but not with anything else
// than an object; null is none.
func isObject(field string, own json.RawMessage) error {
	text := bytes.TrimSpace(own)
	if len(text) == 0 || string(text) == "null" || text[0] == '{' {
		return nil
	}
	return fault.Invalid(field, "%s is an object", field)
}
