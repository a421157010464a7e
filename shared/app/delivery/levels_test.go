package delivery_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
)

// levels returns the gauges of events by their names and labels.
func (h *hooked) levels(outbox port.Outbox) map[string]float64 {
	h.Helper()
	samples, err := delivery.NewEventLevels(outbox, h.feed, h.store, h.clock, true).Samples(h.Context())
	h.ok(err)
	all := map[string]float64{}
	for _, s := range samples {
		name := s.Name
		for _, label := range s.Labels {
			name += " " + label
		}
		if _, twice := all[name]; twice {
			h.Errorf("got %s twice", name)
		}
		all[name] = s.Value
	}
	return all
}

func TestDeliveriesAreCounted(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	w := h.subscribe()
	other := h.subscribe(func(in *delivery.WebhookSettings) { in.Paused = true })
	h.publish("task_1")
	h.work()
	h.receiver.answers(http.StatusServiceUnavailable)
	h.publish("task_2", "task_3", "task_4", "task_5", "task_6")
	h.work()
	for labels, want := range map[[2]string]float64{
		{series.Attempts, "2xx"}: 1, {series.Attempts, "5xx"}: 5, {series.Halts, "circuit"}: 1, {series.Halts, "failing"}: 0,
	} {
		if got := h.tally.Of(labels[0], labels[1]); got != want {
			t.Errorf("got %v of %v, want %v", got, labels, want)
		}
	}
	outbox := h.outbox
	h.append("task_7")
	h.clock.Advance(30 * time.Second)
	h.ok(outbox.SetAside(t.Context(), port.StoredChange{ID: "1", At: h.clock.Now().Add(-time.Minute), Record: []byte(`{}`)}))
	got := h.levels(outbox)
	for name, want := range map[string]float64{
		series.Webhooks + " active": 0, series.Webhooks + " circuit": 1, series.Webhooks + " paused": 1, series.Webhooks + " disabled": 0,
		series.Waiting: 5, series.RelayLag + " feed": 60, series.RelayLag + " bus": 30, series.RelayLag + " webhooks": 30,
	} {
		if got[name] != want {
			t.Errorf("got %s %v, want %v", name, got[name], want)
		}
	}
	h.ok(h.dispatch.Dispatch(t.Context(), subscriber.Tenant))
	h.receiver.answers(http.StatusGone)
	h.pass(time.Hour)
	got = h.levels(outbox)
	if got[series.Webhooks+" disabled"] != 1 || got[series.RelayLag+" webhooks"] != 0 || h.tally.Of(series.Halts, "gone") != 1 {
		t.Errorf("got %v, want webhook %s disabled, %s paused and no lag of webhooks", got, w.ID, other.ID)
	}
	for _, problem := range h.tally.Problems() {
		t.Error(problem)
	}
}

// Attempts without an answer are counted by their reason.
func TestMissingAnswersAreCounted(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	h.subscribe()
	h.receiver.Close()
	h.publish("task_1")
	h.work()
	if got := h.tally.Of(series.Attempts, "connection"); got != 1 {
		t.Errorf("got %v attempts without a connection, want 1", got)
	}
	denied := withWebhooks(t)
	w := denied.subscribe()
	w.URL = "https://10.0.0.1/events" // what was permitted when it was created
	denied.ok(denied.store.SaveWebhook(t.Context(), w, nil))
	denied.publish("task_1")
	denied.work()
	if got := denied.tally.Of(series.Attempts, "refused"); got != 1 {
		t.Errorf("got %v refused attempts, want 1", got)
	}
}
