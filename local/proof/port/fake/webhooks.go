package fake

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// Webhooks wraps another WebhookStore. It adds failures and checks its callers. It is safe for
// concurrent use.
type Webhooks struct {
	calls
	inner  port.WebhookStore
	misuse func(error)
}

var _ port.WebhookStore = (*Webhooks)(nil)

// NewWebhooks wraps inner. misuse is called for every call that the port does not allow.
func NewWebhooks(inner port.WebhookStore, plan Plan, misuse func(error)) *Webhooks {
	return &Webhooks{inner: inner, calls: calls{plan: plan}, misuse: misuse}
}

// SaveWebhook implements port.WebhookStore.
func (s *Webhooks) SaveWebhook(ctx context.Context, w webhook.Webhook, p *webhook.Progress, notes ...port.Note) error {
	if w.Tenant == "" || !webhook.ValidID(w.ID) || w.CreatedAt.IsZero() || len(w.Secrets) == 0 {
		s.misuse(fmt.Errorf("misuse: save of webhook %s without a tenant, an id, a time or a secret", w.ID))
	}
	if (w.Version == 0) != (p != nil && p.Version == 0) || p != nil && p.Ref() != w.Ref() {
		s.misuse(fmt.Errorf("misuse: save of version %d of webhook %s with the progress %+v", w.Version, w.ID, p))
	}
	return s.write("SaveWebhook", func() error { return s.inner.SaveWebhook(ctx, w, p, notes...) })
}

// DeleteWebhook implements port.WebhookStore.
func (s *Webhooks) DeleteWebhook(ctx context.Context, w webhook.Webhook, notes ...port.Note) error {
	return s.write("DeleteWebhook", func() error { return s.inner.DeleteWebhook(ctx, w, notes...) })
}

// SaveDeliveries implements port.WebhookStore.
func (s *Webhooks) SaveDeliveries(ctx context.Context, p webhook.Progress, deliveries ...webhook.Delivery) error {
	seen := map[int64]bool{}
	for _, d := range deliveries {
		if seen[d.Position] || d.Position < 1 || d.EventID == "" || (d.State == webhook.Pending) != d.ExpiresAt.IsZero() {
			s.misuse(fmt.Errorf("misuse: save of the delivery %+v, twice or without a position, an event or a matching expiry", d))
		}
		seen[d.Position] = true
	}
	if len(deliveries) > port.MaxDeliveries || p.Version < 1 || p.Pending < 0 || p.WakeAt.IsZero() {
		s.misuse(fmt.Errorf("misuse: save of %d deliveries with the progress %+v", len(deliveries), p))
	}
	return s.write("SaveDeliveries", func() error { return s.inner.SaveDeliveries(ctx, p, deliveries...) })
}

// PurgeDeliveries implements port.WebhookStore.
func (s *Webhooks) PurgeDeliveries(ctx context.Context, now time.Time, limit int) (int, error) {
	return result(context.Background(), &s.calls, "PurgeDeliveries", "", true, func() (int, error) { return s.inner.PurgeDeliveries(ctx, now, limit) })
}

func (s *Webhooks) write(method string, do func() error) error {
	return s.call(context.Background(), method, "", true, do)
}

// LoadWebhook implements port.WebhookStore.
func (s *Webhooks) LoadWebhook(ctx context.Context, ref webhook.Ref) (webhook.Webhook, error) {
	return read(s, "LoadWebhook", func() (webhook.Webhook, error) { return s.inner.LoadWebhook(ctx, ref) })
}

// Webhooks implements port.WebhookStore.
func (s *Webhooks) Webhooks(ctx context.Context, tenant string, page port.Page) (found []webhook.Webhook, next string, err error) {
	found, err = read(s, "Webhooks", func() (found []webhook.Webhook, err error) {
		found, next, err = s.inner.Webhooks(ctx, tenant, page)
		return found, err
	})
	return found, next, err
}

// WebhooksDue implements port.WebhookStore.
func (s *Webhooks) WebhooksDue(ctx context.Context, now time.Time, after string, limit int) (due []webhook.Ref, next string, err error) {
	due, err = read(s, "WebhooksDue", func() (due []webhook.Ref, err error) {
		due, next, err = s.inner.WebhooksDue(ctx, now, after, limit)
		return due, err
	})
	return due, next, err
}

// Progress implements port.WebhookStore.
func (s *Webhooks) Progress(ctx context.Context, ref webhook.Ref) (webhook.Progress, error) {
	return read(s, "Progress", func() (webhook.Progress, error) { return s.inner.Progress(ctx, ref) })
}

// Delivery implements port.WebhookStore.
func (s *Webhooks) Delivery(ctx context.Context, ref webhook.Ref, position int64) (webhook.Delivery, error) {
	return read(s, "Delivery", func() (webhook.Delivery, error) { return s.inner.Delivery(ctx, ref, position) })
}

// PendingDeliveries implements port.WebhookStore.
func (s *Webhooks) PendingDeliveries(ctx context.Context, ref webhook.Ref, limit int) ([]webhook.Delivery, error) {
	return read(s, "PendingDeliveries", func() ([]webhook.Delivery, error) { return s.inner.PendingDeliveries(ctx, ref, limit) })
}

// Deliveries implements port.WebhookStore.
func (s *Webhooks) Deliveries(ctx context.Context, ref webhook.Ref, state webhook.State, before int64, limit int) ([]webhook.Delivery, error) {
	return read(s, "Deliveries", func() ([]webhook.Delivery, error) { return s.inner.Deliveries(ctx, ref, state, before, limit) })
}

// read is result without a context, because the inner store checks the context.
func read[T any](s *Webhooks, method string, do func() (T, error)) (T, error) {
	return result(context.Background(), &s.calls, method, "", false, do)
}
