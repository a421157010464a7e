// Package export serves POST /export/{format}: it accepts a run (EC-1).
//
// A 202 means that the run is committed. A repeated request with the same
// Idempotency-Key returns 200 and the same body, whatever the state of the run.
package export

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/access"
	"github.com/sortie-dev/sortie/shared/api"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/httpkit"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// accepted is the message that the export contract defines.
const accepted = "Export job started. Use task_id to check status."

// Routes returns the route of exports.
func Routes(svc *orchestrator.Requests) []httpkit.Route {
	return []httpkit.Route{{
		Method: http.MethodPost, Pattern: "/export/{format}", Access: httpkit.ForClients, Scope: access.RunsWrite,
		Handle: func(w http.ResponseWriter, r *http.Request) error { return export(svc, w, r) },
	}}
}

func export(svc *orchestrator.Requests, w http.ResponseWriter, r *http.Request) error {
	format := r.PathValue("format")
	if !slices.Contains(limit.Formats(), format) {
		return unknownFormat()
	}
	key, err := httpkit.IdempotencyKey(r)
	if err != nil {
		return err
	}
	var request contract.ExportRequest
	if err := httpkit.DecodeJSON(w, r, &request); err != nil {
		return err
	}
	submission, err := api.Export(format, request)
	if err != nil {
		return err
	}
	submission.Identity, submission.CorrelationID = httpkit.CallerOf(r.Context()), httpkit.CorrelationID(r.Context())
	submission.IdempotencyKey = key
	run, existing, err := svc.Submit(r.Context(), submission)
	if err != nil {
		return fmt.Errorf("cannot accept the export: %w", err)
	}
	status := http.StatusAccepted
	if existing {
		status = http.StatusOK
	}
	w.Header().Set("Location", "/status/"+url.PathEscape(run.TaskID))
	return httpkit.WriteJSON(w, status, contract.ExportAccepted{
		TaskID: run.TaskID, Status: contract.StatusProcessing, Message: accepted,
	})
}

// unknownFormat returns a 404 that lists the formats.
func unknownFormat() error {
	formats := limit.Formats()
	p := httpkit.ProblemOf(fault.New(fault.NotFound, "unknown export format, want one of %s", strings.Join(formats, ", ")))
	p.Body.Field, p.Body.Formats = "format", formats
	return p
}
