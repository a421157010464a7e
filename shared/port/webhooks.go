package port

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/webhook"
)

// WebhookStore stores webhooks, the progress of their deliveries, and the deliveries.
//
// Reads by id, Deliveries, PendingDeliveries and Progress are strongly consistent. Webhooks and
// WebhooksDue may be eventually consistent: they can miss recent commits, and return deleted
// webhooks. WebhookStore is safe for concurrent use. A write applies all or nothing. The errors
// of a write are those of Store: ErrConflict if a version is not the stored one. A delivery
// past its ExpiresAt is not found.
type WebhookStore interface {
	// SaveWebhook writes a webhook and, if not nil, its progress, and increments their
	// versions. Version 0 creates; otherwise the version must be the stored one. A new webhook
	// has a new progress.
	SaveWebhook(ctx context.Context, w webhook.Webhook, p *webhook.Progress, notes ...Note) error
	// LoadWebhook returns a webhook with its secrets, or ErrNotFound.
	LoadWebhook(ctx context.Context, ref webhook.Ref) (webhook.Webhook, error)
	// DeleteWebhook removes a webhook of this version with its progress. Its deliveries are no
	// longer found.
	DeleteWebhook(ctx context.Context, w webhook.Webhook, notes ...Note) error
	// Webhooks returns a page of a tenant's webhooks, ordered by id. It uses only the page's
	// Cursor and Limit.
	Webhooks(ctx context.Context, tenant string, page Page) (webhooks []webhook.Webhook, next string, err error)
	// WebhooksDue returns a page of at most limit webhooks whose progress has a WakeAt by now,
	// the longest overdue first. It may return a webhook up to a second late. Paging works as
	// in Store.Due.
	WebhooksDue(ctx context.Context, now time.Time, after string, limit int) (due []webhook.Ref, next string, err error)

	// Progress returns the progress of a webhook, or ErrNotFound.
	Progress(ctx context.Context, ref webhook.Ref) (webhook.Progress, error)
	// SaveDeliveries writes the progress of a webhook and at most MaxDeliveries of its
	// deliveries, each at its position. It increments the version of the progress, which must
	// be the stored one. Stored and WasPending of a delivery must be as read.
	SaveDeliveries(ctx context.Context, p webhook.Progress, deliveries ...webhook.Delivery) error
	// Delivery returns the delivery of the event at a position, or ErrNotFound.
	Delivery(ctx context.Context, ref webhook.Ref, position int64) (webhook.Delivery, error)
	// PendingDeliveries returns at most limit pending deliveries, ordered by position.
	PendingDeliveries(ctx context.Context, ref webhook.Ref, limit int) ([]webhook.Delivery, error)
	// Deliveries returns at most limit deliveries with positions below before, the newest
	// first. An empty state means all deliveries.
	Deliveries(ctx context.Context, ref webhook.Ref, state webhook.State, before int64, limit int) ([]webhook.Delivery, error)
	// PurgeDeliveries removes at most limit deliveries that have expired by now, and returns
	// their number. A store that expires them itself returns 0.
	PurgeDeliveries(ctx context.Context, now time.Time, limit int) (int, error)
}

// MaxDeliveries is the maximum number of deliveries in one write.
const MaxDeliveries = 2 * webhook.Parallel

// Wakes is the queue of the webhooks with work to do. Each Wake is received at least once by a
// worker, which calls the use case Delivery. Wakes of one webhook may be merged. It is safe for
// concurrent use.
type Wakes interface {
	// Wake enqueues webhooks. It returns once all of them are durable, or were given to a
	// worker of this process. If that process ends, a sweep finds them.
	Wake(ctx context.Context, wakes ...Wake) error
}

// MaxWakeDelay is the longest delay of a Wake (SQS: 15 minutes). Longer delays need no Wake:
// the sweep finds the WakeAt of the progress.
const MaxWakeDelay = 15 * time.Minute

// Wake requests that a worker processes a webhook after a delay.
type Wake struct {
	Tenant  string        `json:"tenant"`
	Webhook string        `json:"webhook"`
	Delay   time.Duration `json:"-"`
}
