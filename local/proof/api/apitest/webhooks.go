package apitest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
)

// Webhooks are the use cases of webhooks on the store of a stage.
type Webhooks struct {
	*delivery.Webhooks
	Delivery *delivery.Deliverer
	Feed     *fake.Feed

	parts    Parts
	appended int
}

// NewWebhooks returns the use cases of webhooks. The stream of the tenant has one event.
// Receivers may be on loopback, or only on the allowed hosts if there are any.
func NewWebhooks(t *testing.T, parts Parts, allowed ...string) *Webhooks {
	t.Helper()
	if len(allowed) == 0 {
		allowed = []string{"127.0.0.1"}
	}
	policy, err := guard.Policy{}.WithRules(allowed...)
	if err != nil {
		t.Fatal(err)
	}
	store, ok := parts.Store.(port.WebhookStore)
	if !ok {
		t.Fatalf("got a store %T without webhooks", parts.Store)
	}
	policy = policy.WithPlainLoopback()
	w := &Webhooks{parts: parts, Feed: fake.NewFeed(parts.Clock, 24*time.Hour, nil, func(err error) { t.Error(err) })}
	sender := hook.NewSender(hook.Config{Policy: policy, Clock: parts.Clock})
	subscriptions := delivery.NewSubscriptions(
		store, w.Feed, fake.NewWakes(parts.Clock, nil), api.WebhookDocument, parts.Clock, slog.New(slog.DiscardHandler), chance{},
	)
	w.Webhooks = delivery.NewWebhooks(subscriptions, sender, policy)
	w.Delivery = delivery.NewDeliverer(subscriptions, parts.Store, sender, chance{}.Float64, "worker", series.Discard)
	w.Publish(t)
	return w
}

// Publish appends an event to the stream of the tenant.
func (w *Webhooks) Publish(t *testing.T) {
	t.Helper()
	w.appended++
	e := events.Envelope{
		SchemaVersion: events.SchemaVersion, EventID: events.ID(fmt.Sprintf("%026d", w.appended)), EventType: eventtype.PolicyUpdated,
		OccurredAt: w.parts.Clock.Now(), TenantID: Tenant, Policy: &events.Policy{Resource: "pool", ID: "p", Version: int64(w.appended)},
		Notifier: &events.Notifier{Channel: "orch.policy", Delivery: events.DeliveryDSSE},
	}
	payload, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	data := fmt.Sprintf(`{"payload":%q}`, base64.StdEncoding.EncodeToString(payload))
	_, err = w.Feed.Append(t.Context(), port.EventStream(Tenant), port.Batch{
		After: int64(w.appended - 1), Records: []port.FeedRecord{{ID: e.EventID, At: e.OccurredAt, Data: []byte(data)}},
	})
	if err != nil {
		t.Fatal(err)
	}
}
