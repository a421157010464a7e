package delivery_test

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

var discard = slog.New(slog.DiscardHandler)

func TestWebhookSettingsAreChecked(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	for name, row := range map[string]struct {
		change func(*delivery.WebhookSettings)
		field  string
		code   fault.Code
	}{
		"no URL":         {func(in *delivery.WebhookSettings) { in.URL = "" }, "url", fault.InvalidRequest},
		"private":        {func(in *delivery.WebhookSettings) { in.URL = "https://10.0.0.1/" }, "url", fault.Unprocessable},
		"plain":          {func(in *delivery.WebhookSettings) { in.URL = "http://hooks.example.org/" }, "url", fault.Unprocessable},
		"port":           {func(in *delivery.WebhookSettings) { in.URL = "https://hooks.example.org:22/" }, "url", fault.Unprocessable},
		"type":           {func(in *delivery.WebhookSettings) { in.Filter.Types = []string{"job.exploded"} }, "eventTypes", fault.InvalidRequest},
		"job":            {func(in *delivery.WebhookSettings) { in.Filter.JobID = "a\x00" }, "jobId", fault.InvalidRequest},
		"description":    {func(in *delivery.WebhookSettings) { in.Description = strings.Repeat("x", 501) }, "description", fault.InvalidRequest},
		"rate":           {func(in *delivery.WebhookSettings) { in.RateLimit = 1001 }, "rateLimit", fault.InvalidRequest},
		"negative rate":  {func(in *delivery.WebhookSettings) { in.RateLimit = -1 }, "rateLimit", fault.InvalidRequest},
		"private by IP6": {func(in *delivery.WebhookSettings) { in.URL = "https://[::ffff:10.0.0.1]/" }, "url", fault.Unprocessable},
	} {
		in := delivery.WebhookSettings{URL: "https://hooks.example.org/"}
		row.change(&in)
		_, _, _, err := h.webhooks.Create(t.Context(), subscriber, in, "", "")
		if f := fault.Of(err); f == nil || f.Code != row.code || f.Field != row.field {
			t.Errorf("%s: got %v, want %s of %s", name, err, row.code, row.field)
		}
	}
	if found, _, err := h.webhooks.List(t.Context(), subscriber, port.Page{Limit: 10}); err != nil || len(found) != 0 {
		t.Errorf("got %v, %v, want nothing stored", found, err)
	}
}

func TestWebhookIsCreatedOncePerKey(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	in := delivery.WebhookSettings{URL: "https://hooks.example.org/"}
	first, secret, existing, err := h.webhooks.Create(t.Context(), subscriber, in, "key", "digest")
	if err != nil || existing || !strings.HasPrefix(secret, "whsec_") {
		t.Fatalf("got %v, %t, %v, want a new webhook", first, existing, err)
	}
	h.clock.Advance(time.Hour)
	again, secret, existing, err := h.webhooks.Create(t.Context(), subscriber, in, "key", "digest")
	if err != nil || !existing || secret != "" || again.ID != first.ID {
		t.Errorf("got %v, %q, %t, %v, want the first webhook without its secret", again, secret, existing, err)
	}
	if _, _, _, err := h.webhooks.Create(t.Context(), subscriber, in, "key", "another"); !fault.Is(err, fault.IdempotencyMismatch) {
		t.Errorf("got %v, want IDEMPOTENCY_MISMATCH", err)
	}
	other := subscriber
	other.Tenant = "zenith"
	if v, _, existing, err := h.webhooks.Create(t.Context(), other, in, "key", "digest"); err != nil || existing || v.ID == first.ID {
		t.Errorf("got %v, %t, %v, want a webhook of the other tenant", v, existing, err)
	}
	if _, err := h.webhooks.Webhook(t.Context(), other, first.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v for a webhook of another tenant, want NOT_FOUND (EE-1.3)", err)
	}
}

// TestIDHasTheTimeOfItsKey creates webhooks with keys that contain a time, and with others.
func TestIDHasTheTimeOfItsKey(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	for key, want := range map[string]string{
		"01KJMMA2G0EXJP4T3FDXNJWC1Q":           "2026-03-01T12:00:00Z",
		"019ca945-0a00-7000-8000-000000000000": "2026-03-01T12:00:00Z",
		"8c2f5b1e-6f0a-4d57-9d5b-1b2f0a7c9e11": "1970-01-01T00:00:00Z",
		"deploy-7":                             "1970-01-01T00:00:00Z",
	} {
		var ids []string
		for range 2 {
			v, _, _, err := h.webhooks.Create(t.Context(), subscriber, delivery.WebhookSettings{URL: h.receiver.URL}, key, "digest")
			h.ok(err)
			ids = append(ids, v.ID)
			h.clock.Advance(time.Hour)
		}
		id, err := ulid.Parse(strings.TrimPrefix(ids[0], "whk_"))
		if got := ulid.Time(id.Time()).UTC().Format(time.RFC3339); err != nil || got != want || ids[1] != ids[0] {
			t.Errorf("%s: got %v, the time %s, %v, want %s and the same id twice", key, ids, got, err, want)
		}
	}
}

// TestChangesOfAWebhookAreEvents checks the digests and the actor of each event (EE-3.7).
func TestChangesOfAWebhookAreEvents(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	w := h.subscribe()
	_, err := h.webhooks.Change(t.Context(), subscriber, w.ID, change.Precondition{}, func(in delivery.WebhookSettings) (delivery.WebhookSettings, bool, error) {
		in.Description = "changed"
		return in, false, nil
	})
	h.ok(err)
	_, _, err = h.webhooks.Rotate(t.Context(), subscriber, w.ID, false, change.Precondition{})
	h.ok(err)
	h.ok(h.webhooks.Delete(t.Context(), subscriber, w.ID, change.Precondition{}))
	if err := h.webhooks.Delete(t.Context(), subscriber, w.ID, change.Precondition{}); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v, want NOT_FOUND", err)
	}
	before, ids := "", map[string]bool{}
	for i, e := range h.store.notes {
		want := fmt.Sprintf("orch-policy.updated-webhook/%s/%d-%d", w.ID, w.CreatedAt.UnixNano(), i+1)
		if e.Policy.Before != before || (e.Policy.After == "") != (i == 3) || e.IdempotencyKey != want || e.Actor.Subject != "token/abc123" || e.Policy.Version != int64(i+1) {
			t.Errorf("event %d: got %+v with key %s by %s, want it behind %q with key %s", i, e.Policy, e.IdempotencyKey, e.Actor.Subject, before, want)
		}
		before, ids[e.EventID] = e.Policy.After, true
	}
	if len(ids) != 4 {
		t.Errorf("got %d events, want 4", len(ids))
	}
}

// TestPing sends a test event, which has its own type and key and does not count as a delivery.
func TestPing(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	w := h.subscribe(func(in *delivery.WebhookSettings) { in.Paused = true })
	h.receiver.answers(418)
	a, err := h.webhooks.Test(t.Context(), subscriber, w.ID)
	if err != nil || a.Status != 418 || a.Response != "an answer" {
		t.Fatalf("got %+v, %v, want the answer", a, err)
	}
	if _, err := h.webhooks.Test(t.Context(), subscriber, w.ID); err != nil {
		t.Fatal(err)
	}
	e := h.receiver.got[0]
	keys := map[string]bool{e.IdempotencyKey: true, h.receiver.got[1].IdempotencyKey: true}
	for _, note := range h.store.notes {
		keys[note.IdempotencyKey] = true
	}
	if len(keys) != 3 {
		t.Errorf("got the keys %v, want one of the creation and of each test", slices.Sorted(maps.Keys(keys)))
	}
	if e.EventType != "webhook.test" || e.Policy.Reason != "test" || e.Policy.ID != w.ID || h.receiver.headers[0].Get("Webhook-Id") != e.EventID {
		t.Errorf("got %s, want an event about the webhook", h.receiver.bodies[0])
	}
	if v := h.view(w); v.Progress.Health.Failures != 0 || len(h.delivered(w)) != 0 {
		t.Errorf("got %+v, want no trace", v.Progress)
	}
}

// TestWebhookOfATaskIsDeletedWithIt removes the record of the task.
func TestWebhookOfATaskIsDeletedWithIt(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	h.tasks["export_1"] = true
	v, secret, err := h.webhooks.ForTask(t.Context(), subscriber, "export_1", delivery.WebhookSettings{URL: h.receiver.URL, Filter: events.Filter{Types: []string{"job.*"}}})
	if err != nil || secret == "" || v.Filter.TaskID != "export_1" {
		t.Fatalf("got %+v, %v, want a webhook of the task", v, err)
	}
	h.publish("export_1", "export_2")
	h.pass(3 * time.Hour)
	if got := h.receiver.tasks(); fmt.Sprint(got) != "[export_1]" {
		t.Errorf("got %v, want the event of the task", got)
	}
	again, secret, err := h.webhooks.ForTask(t.Context(), subscriber, "export_1", delivery.WebhookSettings{URL: h.receiver.URL, Filter: events.Filter{Types: []string{"job.*"}}})
	if err != nil || secret != "" || again.ID != v.ID {
		t.Errorf("got %+v, %q, %v, want the same webhook without its secret", again, secret, err)
	}
	delete(h.tasks, "export_1")
	h.pass(2 * time.Hour)
	if _, err := h.webhooks.Webhook(t.Context(), subscriber, v.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v after the task was deleted, want NOT_FOUND", err)
	}
}

// TestDispatchWakesOnceForManyEvents dispatches several events of one webhook. A webhook whose
// filter selects no event is not notified.
func TestDispatchWakesOnceForManyEvents(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	w := h.subscribe(func(in *delivery.WebhookSettings) { in.Filter.TaskID = "a" })
	h.subscribe(func(in *delivery.WebhookSettings) { in.Filter.TaskID = "b" })
	h.publish("a", "c", "a")
	if due := h.wakes.Due(); len(due) != 1 || due[0].Webhook != w.ID {
		t.Errorf("got wakes %v, want one of %s", due, w.ID)
	}
	if position, err := h.dispatch.Position(t.Context(), subscriber.Tenant); err != nil || position != 3 {
		t.Errorf("got position %d, %v, want 3", position, err)
	}
	h.append("b")
	h.ok(h.dispatch.Work().Do(t.Context(), subscriber.Tenant))
	if due := h.wakes.Due(); len(due) != 1 || due[0].Webhook == w.ID {
		t.Errorf("got wakes %v, want one of the other webhook", due)
	}
}

// TestSweepDispatchesForTenantsWithoutWebhooks checks that only a sweep moves the cursor of a
// tenant without a live webhook. A webhook does not get events from before its creation.
func TestSweepDispatchesForTenantsWithoutWebhooks(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	dispatched := func() int64 {
		if failed := h.dispatch.DispatchTenants(t.Context(), []string{subscriber.Tenant}); failed > 0 {
			t.Fatalf("got %d failed tenants", failed)
		}
		position, err := h.dispatch.Position(t.Context(), subscriber.Tenant)
		h.ok(err)
		return position
	}
	h.append("a", "b")
	h.clock.Advance(time.Minute)
	if at := dispatched(); at != 0 {
		t.Errorf("got position %d without a webhook, want 0", at)
	}
	if lag := h.levels(h.outbox)[series.RelayLag+" webhooks"]; lag != 0 {
		t.Errorf("got a lag of %v s without a webhook, want 0", lag)
	}
	h.ok(h.dispatch.Work().Do(t.Context(), subscriber.Tenant))
	if at := dispatched(); at != 2 {
		t.Errorf("got position %d after a sweep, want 2", at)
	}
	h.append("c")
	w := h.subscribe()
	h.clock.Advance(2 * time.Second) // the process reads the webhooks again
	h.append("d")
	if at := dispatched(); at != 4 || len(h.wakes.Due()) != 1 {
		t.Errorf("got position %d and wakes %v, want 4 and one of %s", at, h.wakes.Due(), w.ID)
	}
}

// TestNewEpochRestartsTheCursor loses the stream: the new one is delivered from its start.
func TestNewEpochRestartsTheCursor(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	h.publish("old", "old", "old")
	w := h.subscribe()
	h.publish("one")
	h.work()
	h.feed.Lose(port.EventStream(subscriber.Tenant))
	h.append("two")
	h.ok(h.delivery.Deliver(t.Context(), w.Ref()))
	if got := h.receiver.tasks(); fmt.Sprint(got) != "[one two]" {
		t.Errorf("got %v, want the event of the new stream", got)
	}
	if log := h.delivered(w); len(log) != 2 || log[0].State != webhook.Delivered {
		t.Errorf("got %+v, want both deliveries", log)
	}
}
