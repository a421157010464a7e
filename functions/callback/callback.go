// Package callback is the front door of POST /callback/{task_id}: a worker's
// last word in the export contract's shape.
//
// Its 200 means that the report is committed, or was before. The token of
// CALLBACK_URL lets nobody but the worker of one attempt in; it may also come as
// Authorization: Bearer. The body is read leniently, because what a worker in
// the field has done is worth more than how it says so.
package callback

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/httpkit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// Routes lists what this front door serves.
func Routes(svc *orchestrator.Service) []httpkit.Route {
	return []httpkit.Route{{
		Method: http.MethodPost, Pattern: "/callback/{task_id}", Access: httpkit.ForWorkers,
		Query:  []string{"token"},
		Handle: func(w http.ResponseWriter, r *http.Request) error { return callback(svc, w, r) },
	}}
}

func callback(svc *orchestrator.Service, w http.ResponseWriter, r *http.Request) error {
	claims, err := svc.VerifyToken(r.Context(), tokenOf(r), contract.AudienceCallback, r.PathValue("task_id"))
	if err != nil {
		return fmt.Errorf("cannot let the worker in: %w", err)
	}
	var body contract.Callback
	if err := httpkit.DecodeJSON(w, r, &body, httpkit.Lenient); err != nil {
		return err
	}
	if body.Metrics, err = metricsOf(body.Metrics); err != nil {
		return err
	}
	if err := svc.Callback(r.Context(), claims, body); err != nil {
		return refusal(r.Context(), svc, claims, err)
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

// metricsOf takes a worker's own object as it is, null for none.
func metricsOf(metrics json.RawMessage) (json.RawMessage, error) {
	text := bytes.TrimSpace(metrics)
	switch {
	case len(text) == 0, string(text) == "null":
		return nil, nil
	case text[0] != '{':
		return nil, fault.Invalid("metrics", "metrics is an object")
	}
	return text, nil
}

// refusal adds what the worker contract fixes for a refused call.
func refusal(ctx context.Context, svc *orchestrator.Service, claims contract.Claims, err error) error {
	p := httpkit.ProblemOf(fmt.Errorf("cannot take the callback: %w", err))
	if p.Body.Error == "" {
		return p
	}
	worker := orchestrator.Identity{Tenant: claims.TenantID, Workspace: claims.WorkspaceID}
	task, lookup := svc.Task(ctx, worker, claims.TaskID)
	if lookup != nil {
		httpkit.Log(ctx).WarnContext(ctx, "cannot tell a worker how its task stands", "error", lookup.Error())
		return p
	}
	attempt := task.Run.Attempt
	switch p.Body.Error {
	case contract.ErrorAttemptMismatch:
		p.Body.ExpectedAttempt, p.Body.ReceivedAttempt = attempt.Number, claims.Attempt
	case contract.ErrorTaskAlreadyTerminal:
		p.Body.State = string(attempt.Outcome)
	}
	return p
}
