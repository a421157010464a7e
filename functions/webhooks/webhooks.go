// Package webhooks serves /v1/webhooks: subscriptions to events, their deliveries, and
// redeliveries.
//
// A change is committed before the response, and conditional on If-Match. A secret is only in
// the response of the request that created it.
package webhooks

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// Page lengths.
const (
	pageLimit   = 1000
	pageDefault = 50
)

// settingsSize is the largest size of the settings of a webhook.
const settingsSize = 64 << 10

// Routes returns the routes of webhooks.
func Routes(svc *delivery.Webhooks) []httpkit.Route {
	route := httpkit.ClientRoutes(svc)
	return []httpkit.Route{
		route(http.MethodPost, "/v1/webhooks", access.WebhooksWrite, create),
		route(http.MethodGet, "/v1/webhooks", access.EventsRead, list, "cursor", "limit"),
		route(http.MethodGet, "/v1/webhooks/{webhook_id}", access.EventsRead, get),
		route(http.MethodPatch, "/v1/webhooks/{webhook_id}", access.WebhooksWrite, patch),
		route(http.MethodDelete, "/v1/webhooks/{webhook_id}", access.WebhooksWrite, remove),
		route(http.MethodPost, "/v1/webhooks/{webhook_id}/rotate", access.WebhooksWrite, rotate),
		route(http.MethodPost, "/v1/webhooks/{webhook_id}/test", access.WebhooksWrite, test),
		route(http.MethodGet, "/v1/webhooks/{webhook_id}/deliveries", access.EventsRead, deliveries, "cursor", "limit", "state"),
		route(http.MethodPost, "/v1/webhooks/{webhook_id}/redeliver", access.WebhooksWrite, redeliver),
	}
}

// answer writes a webhook with its tag.
func answer(w http.ResponseWriter, status int, v delivery.WebhookView, secret string) error {
	w.Header().Set("ETag", delivery.WebhookTag(v.Webhook))
	return httpkit.WriteJSON(w, status, api.WebhookDetail(v, secret))
}

func create(svc *delivery.Webhooks, w http.ResponseWriter, r *http.Request) error {
	var body contract.WebhookSettings
	key, err := httpkit.DecodeKeyed(w, r, &body)
	if err != nil {
		return err
	}
	ctx, who, _ := httpkit.Request(r, "webhook_id")
	v, secret, existing, err := svc.Create(ctx, who, api.WebhookSettings(body), key, httpkit.PayloadDigest(ctx))
	if err != nil {
		return fmt.Errorf("cannot create the webhook: %w", err)
	}
	status := http.StatusCreated
	if existing {
		status = http.StatusOK
	}
	w.Header().Set("Location", "/v1/webhooks/"+url.PathEscape(v.ID))
	return answer(w, status, v, secret)
}

func list(svc *delivery.Webhooks, w http.ResponseWriter, r *http.Request) error {
	most, err := httpkit.IntQuery(r, "limit", 1, pageLimit, pageDefault)
	if err != nil {
		return err
	}
	ctx, who, _ := httpkit.Request(r, "webhook_id")
	found, next, err := svc.List(ctx, who, port.Page{Cursor: r.URL.Query().Get("cursor"), Limit: most})
	if err != nil {
		return fmt.Errorf("cannot list the webhooks: %w", err)
	}
	page := contract.WebhookList{Webhooks: make([]contract.Webhook, len(found)), NextCursor: next}
	for i, each := range found {
		page.Webhooks[i] = api.Webhook(each)
	}
	return httpkit.WriteJSON(w, http.StatusOK, page)
}

func get(svc *delivery.Webhooks, w http.ResponseWriter, r *http.Request) error {
	v, err := svc.Webhook(httpkit.Request(r, "webhook_id"))
	if err != nil {
		return fmt.Errorf("cannot read the webhook: %w", err)
	}
	return answer(w, http.StatusOK, v, "")
}

func patch(svc *delivery.Webhooks, w http.ResponseWriter, r *http.Request) error {
	required, err := httpkit.Precondition(r)
	if err != nil {
		return err
	}
	document, err := httpkit.ReadDocument(w, r, settingsSize, httpkit.TypePatch, httpkit.TypeJSON)
	if err != nil {
		return err
	}
	ctx, who, id := httpkit.Request(r, "webhook_id")
	v, err := svc.Change(ctx, who, id, required, func(stored delivery.WebhookSettings) (delivery.WebhookSettings, bool, error) {
		return api.PatchWebhook(stored, document, httpkit.ParseJSON)
	})
	if err != nil {
		return fmt.Errorf("cannot change the webhook: %w", err)
	}
	return answer(w, http.StatusOK, v, "")
}

func remove(svc *delivery.Webhooks, w http.ResponseWriter, r *http.Request) error {
	return httpkit.Remove(w, r, "webhook", r.PathValue("webhook_id"), svc.Delete)
}

func rotate(svc *delivery.Webhooks, w http.ResponseWriter, r *http.Request) error {
	required, err := httpkit.Precondition(r)
	if err != nil {
		return err
	}
	var body contract.RotateWebhookRequest
	if err := httpkit.DecodeOptionalJSON(w, r, &body); err != nil {
		return err
	}
	ctx, who, id := httpkit.Request(r, "webhook_id")
	v, secret, err := svc.Rotate(ctx, who, id, body.RevokeOlder, required)
	if err != nil {
		return fmt.Errorf("cannot rotate the secret of the webhook: %w", err)
	}
	return answer(w, http.StatusOK, v, secret)
}

func test(svc *delivery.Webhooks, w http.ResponseWriter, r *http.Request) error {
	if err := httpkit.DecodeOptionalJSON(w, r, &struct{}{}); err != nil {
		return err
	}
	a, err := svc.Test(httpkit.Request(r, "webhook_id"))
	if err != nil {
		return fmt.Errorf("cannot test the webhook: %w", err)
	}
	return httpkit.WriteJSON(w, http.StatusOK, api.WebhookAttempt(a))
}

func deliveries(svc *delivery.Webhooks, w http.ResponseWriter, r *http.Request) error {
	most, err := httpkit.IntQuery(r, "limit", 1, pageLimit, pageDefault)
	if err != nil {
		return err
	}
	state := webhook.State(r.URL.Query().Get("state"))
	if state != "" && !slices.Contains(webhook.States(), state) {
		return fault.Invalid("state", "unknown state %.40q, want one of %v", state, webhook.States())
	}
	before := int64(math.MaxInt64)
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		if before, err = strconv.ParseInt(cursor, 10, 64); err != nil || before < 1 {
			return fault.Invalid("cursor", "malformed cursor, want nextCursor of the previous page")
		}
	}
	ctx, who, id := httpkit.Request(r, "webhook_id")
	found, err := svc.Deliveries(ctx, who, id, state, before, most)
	if err != nil {
		return fmt.Errorf("cannot read the deliveries of the webhook: %w", err)
	}
	page := contract.WebhookDeliveries{Deliveries: make([]contract.WebhookDelivery, len(found))}
	for i, d := range found {
		page.Deliveries[i] = api.WebhookDelivery(d)
	}
	if len(found) == most {
		page.NextCursor = strconv.FormatInt(found[most-1].Position, 10)
	}
	return httpkit.WriteJSON(w, http.StatusOK, page)
}

func redeliver(svc *delivery.Webhooks, w http.ResponseWriter, r *http.Request) error {
	var body contract.RedeliverRequest
	if err := httpkit.DecodeJSON(w, r, &body); err != nil {
		return err
	}
	replay, err := redelivery(svc, r, body)
	if f := fault.Of(err); f != nil && body.Position != nil && f.Field == "from" {
		err = fault.Invalid("position", "%s", f.Message)
	}
	if err != nil {
		return fmt.Errorf("cannot redeliver events: %w", err)
	}
	return httpkit.WriteJSON(w, http.StatusAccepted, api.Redelivery(replay))
}

// redelivery starts the redelivery of a request.
func redelivery(svc *delivery.Webhooks, r *http.Request, body contract.RedeliverRequest) (webhook.Replay, error) {
	ctx, who, id := httpkit.Request(r, "webhook_id")
	if since := body.FailedSince; since != nil {
		if body.Position != nil || body.From != nil || body.To != nil {
			return webhook.Replay{}, fault.Invalid("failedSince", "got failedSince and positions, want one of them")
		}
		return svc.RedeliverFailed(ctx, who, id, *since)
	}
	positions, err := api.RedeliveryRange(body)
	if err != nil {
		return webhook.Replay{}, err
	}
	return svc.Redeliver(ctx, who, id, positions)
}
