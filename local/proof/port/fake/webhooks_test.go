package fake_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// The suite calls its store incorrectly on purpose, so the reports are dropped.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	porttest.Webhooks(t, func(t *testing.T) (port.WebhookStore, func()) {
		return fake.NewWebhooks(inner(t), nil, func(error) {}), nil
	})
}

func TestWebhooksFailInBothWays(t *testing.T) {
	t.Parallel()
	behind := inner(t)
	store := fake.NewWebhooks(behind, fake.Script(fake.Lost, fake.Unsure), func(err error) { t.Error(err) })
	for _, there := range []bool{false, true} {
		w := webhook.Webhook{Tenant: "acme", ID: webhook.ID(newYear, "one"), CreatedAt: newYear, Secrets: make([]webhook.Secret, 1)}
		p := w.Begin(0, "", newYear)
		if err := store.SaveWebhook(t.Context(), w, &p); !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v, want an Unavailable fault", err)
		}
		if _, err := behind.LoadWebhook(t.Context(), w.Ref()); (err == nil) != there {
			t.Errorf("got %v, want it stored: %t", err, there)
		}
	}
}

func TestMisuseOfWebhooksIsReported(t *testing.T) {
	t.Parallel()
	reports := 0
	store := fake.NewWebhooks(inner(t), nil, func(error) { reports++ })
	valid := webhook.Webhook{Tenant: "acme", ID: webhook.ID(newYear, "one"), CreatedAt: newYear, Secrets: make([]webhook.Secret, 1)}
	p := valid.Begin(0, "", newYear)
	noID, noSecret := valid, valid
	noID.ID, noSecret.Secrets = "one", nil
	for _, w := range []webhook.Webhook{noID, noSecret} {
		p := w.Begin(0, "", newYear)
		_ = store.SaveWebhook(t.Context(), w, &p)
	}
	_ = store.SaveWebhook(t.Context(), valid, nil)
	p.Version = 1
	d := webhook.Delivery{Position: 1, EventID: "e", State: webhook.Pending}
	expires := d
	expires.ExpiresAt = newYear.Add(time.Hour)
	_ = store.SaveDeliveries(t.Context(), p, d, d)
	_ = store.SaveDeliveries(t.Context(), p, expires)
	_ = store.SaveDeliveries(t.Context(), webhook.Progress{}, d)
	if reports != 6 {
		t.Errorf("got %d reports, want 6", reports)
	}
}
