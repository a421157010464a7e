// Package export serves POST /export/{format}. It accepts a run (EC-1), with a webhook for its
// events if the request has one.
//
// A 202 means that the run is committed. A repeated request with the same Idempotency-Key
// returns 200 and the same body, in any state of the run.
package export

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// accepted is the message that the export contract defines.
const accepted = "Export job started. Use task_id to check status."

// Routes returns the route of exports.
func Routes(svc *runs.Requests, webhooks delivery.TaskWebhooks) []httpkit.Route {
	return []httpkit.Route{{
		Method: http.MethodPost, Pattern: "/export/{format}", Access: httpkit.ForClients, Scope: access.RunsWrite,
		Handle: func(w http.ResponseWriter, r *http.Request) error { return export(svc, webhooks, w, r) },
	}}
}

func export(svc *runs.Requests, webhooks delivery.TaskWebhooks, w http.ResponseWriter, r *http.Request) error {
	format := r.PathValue("format")
	if !slices.Contains(limit.Formats(), format) {
		return unknownFormat()
	}
	var request contract.ExportRequest
	key, err := httpkit.DecodeKeyed(w, r, &request)
	if err != nil {
		return err
	}
	submission, err := api.Export(format, request)
	if err != nil {
		return err
	}
	submission.Identity, submission.CorrelationID = httpkit.CallerOf(r.Context()), httpkit.CorrelationID(r.Context())
	submission.IdempotencyKey, submission.PayloadDigest = key, httpkit.PayloadDigest(r.Context())
	submission.TraceParent = httpkit.TraceParent(r)
	hook := taskWebhook{TaskWebhooks: webhooks, in: api.ExportWebhook(request.Webhook)}
	if hook.in != nil {
		if err := submission.Identity.Need(access.WebhooksWrite, "webhook"); err != nil {
			return err
		}
		submission.Prepare = func(taskID string) error { return hook.create(r.Context(), taskID) }
	}
	run, existing, err := svc.Submit(r.Context(), submission)
	if err == nil && existing && hook.in != nil {
		err = hook.create(r.Context(), run.TaskID)
	}
	if err != nil {
		return fmt.Errorf("cannot accept the export: %w", err)
	}
	return httpkit.WriteAccepted(w, existing, "/status/"+url.PathEscape(run.TaskID), contract.ExportAccepted{
		TaskID: run.TaskID, Status: contract.StatusProcessing, Message: accepted, Webhook: hook.created,
	})
}

// taskWebhook is the webhook of a request.
type taskWebhook struct {
	delivery.TaskWebhooks
	in      *delivery.WebhookSettings
	created *contract.ExportWebhookCreated
}

// create creates the webhook of a task, or returns the existing one. A webhook whose task was
// not stored is deleted automatically.
func (h *taskWebhook) create(ctx context.Context, taskID string) error {
	v, secret, err := h.ForTask(ctx, httpkit.CallerOf(ctx), taskID, *h.in)
	if f := fault.Of(err); f != nil && f.Field != "" {
		named := *f
		named.Field = "webhook." + f.Field
		return &named
	}
	if err == nil {
		h.created = &contract.ExportWebhookCreated{ID: v.ID, Secret: secret}
	}
	return err
}

// unknownFormat returns a 404 that lists the formats.
func unknownFormat() error {
	formats := limit.Formats()
	p := httpkit.ProblemOf(fault.New(fault.NotFound, "unknown export format, want one of %s", strings.Join(formats, ", ")))
	p.Body.Field, p.Body.Formats = "format", formats
	return p
}
