package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// CreateWebhook subscribes an address to events. key is the Idempotency-Key, which makes
// the call safe to repeat.
func (c *Client) CreateWebhook(ctx context.Context, settings contract.WebhookSettings, key string) (contract.WebhookDetail, error) {
	return ask[contract.WebhookDetail](ctx, c, call{
		method: http.MethodPost, path: "v1/webhooks", header: http.Header{"Idempotency-Key": {key}}, body: settings, repeat: true,
	})
}

// Webhooks reads a page of the webhooks, ordered by id.
func (c *Client) Webhooks(ctx context.Context, cursor string) (contract.WebhookList, error) {
	return ask[contract.WebhookList](ctx, c, call{method: http.MethodGet, path: "v1/webhooks", query: url.Values{"cursor": {cursor}}, repeat: true})
}

// Webhook reads a webhook.
func (c *Client) Webhook(ctx context.Context, id string) (contract.WebhookDetail, error) {
	return ask[contract.WebhookDetail](ctx, c, call{method: http.MethodGet, path: webhookPath(id), repeat: true})
}

// RotateWebhook adds a secret to a webhook. If revoke is true, it removes the older ones.
func (c *Client) RotateWebhook(ctx context.Context, id string, revoke bool) (contract.WebhookDetail, error) {
	return ask[contract.WebhookDetail](ctx, c, call{method: http.MethodPost, path: webhookPath(id, "rotate"), body: contract.RotateWebhookRequest{RevokeOlder: revoke}})
}

// TestWebhook sends a test event.
func (c *Client) TestWebhook(ctx context.Context, id string) (contract.WebhookAttempt, error) {
	return ask[contract.WebhookAttempt](ctx, c, call{method: http.MethodPost, path: webhookPath(id, "test"), body: struct{}{}})
}

// WebhookDeliveries reads a page of the delivery log, the newest events first. state may be
// empty.
func (c *Client) WebhookDeliveries(ctx context.Context, id, state string, limit int) (log contract.WebhookDeliveries, err error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if state != "" {
		query.Set("state", state)
	}
	_, err = c.do(ctx, call{method: http.MethodGet, path: webhookPath(id, "deliveries"), query: query, repeat: true}, &log)
	return log, err
}

// Redeliver sends the selected events again.
func (c *Client) Redeliver(ctx context.Context, id string, body contract.RedeliverRequest) (contract.Redelivery, error) {
	return ask[contract.Redelivery](ctx, c, call{method: http.MethodPost, path: webhookPath(id, "redeliver"), body: body})
}

// DeleteWebhook removes a webhook.
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	_, err := ask[[]byte](ctx, c, call{method: http.MethodDelete, path: webhookPath(id)})
	return err
}

func webhookPath(id string, what ...string) string {
	path := "v1/webhooks/" + url.PathEscape(id)
	for _, each := range what {
		path += "/" + each
	}
	return path
}

// Replay sends events of the stream again. key is the Idempotency-Key, which makes the
// call safe to repeat.
func (c *Client) Replay(ctx context.Context, request contract.ReplayRequest, key string) (contract.Replay, error) {
	return ask[contract.Replay](ctx, c, call{
		method: http.MethodPost, path: "v1/events:replay", header: http.Header{"Idempotency-Key": {key}}, body: request, repeat: true,
	})
}
