package delivery_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
)

// TestEventIsDelivered compares the received request with the event of the stream (EE-5.2,
// EE-2.24).
func TestEventIsDelivered(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	h.publish("before")
	w := h.subscribe()
	h.publish("one")
	h.work()
	if len(h.receiver.got) != 1 {
		t.Fatalf("got %d events, want the one after the webhook was created", len(h.receiver.got))
	}
	e, header := h.receiver.got[0], h.receiver.headers[0]
	if e.Job.ID != "one" || e.Notifier.Delivery != events.DeliveryHMAC || e.Notifier.Channel != "orch.jobs" || e.Notifier.Replay != nil {
		t.Errorf("got %s, want the event by HMAC", h.receiver.bodies[0])
	}
	key, err := hook.ParseKey(w.Secrets[0].Text)
	if err != nil {
		t.Fatal(err)
	}
	want := http.Header{}
	key.Sign(want, e.EventID, h.clock.Now(), []byte(h.receiver.bodies[0]))
	for name := range want {
		if got := header.Get(name); got != want.Get(name) {
			t.Errorf("%s: got %q, want %q", name, got, want.Get(name))
		}
	}
	log := h.delivered(w)
	if len(log) != 1 || log[0].State != webhook.Delivered || log[0].EventID != e.EventID || log[0].TaskID != "one" || len(log[0].Log) != 1 || log[0].Log[0].Status != 200 {
		t.Errorf("got log %+v, want one success", log)
	}
	h.publish("two")
	h.pass(10 * time.Minute)
	if got := h.receiver.tasks(); fmt.Sprint(got) != "[one two]" {
		t.Errorf("got %v, want each event once", got)
	}
}

// TestEventIsRepeatedUnderItsID fails the first attempts (EE-3.4, EE-6.2).
func TestEventIsRepeatedUnderItsID(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	h.receiver.answers(500)
	w := h.subscribe()
	h.publish("one")
	h.pass(4 * time.Second)
	if n := len(h.receiver.got); n != 1 {
		t.Fatalf("got %d attempts in 4 seconds, want 1", n)
	}
	h.pass(2 * time.Second)
	h.pass(4 * time.Minute)
	if n := len(h.receiver.got); n != 2 {
		t.Fatalf("got %d attempts in 4 minutes, want 2", n)
	}
	h.receiver.answers(204)
	h.pass(2 * time.Minute)
	h.pass(48 * time.Hour)
	if len(h.receiver.got) != 3 || h.view(w).Progress.Pending != 0 {
		t.Fatalf("got %d attempts, want 3", len(h.receiver.got))
	}
	first, last := h.receiver.headers[0], h.receiver.headers[2]
	if first.Get("Webhook-Id") != last.Get("Webhook-Id") || h.receiver.got[0].EventID != h.receiver.got[2].EventID ||
		first.Get("Webhook-Timestamp") == last.Get("Webhook-Timestamp") || first.Get("Webhook-Signature") == last.Get("Webhook-Signature") {
		t.Errorf("got headers %v, then %v, want the same id, signed when it is sent", first, last)
	}
	if d := h.delivered(w)[0]; d.State != webhook.Delivered || d.Tries != 3 || d.Log[0].Status != 500 || d.Log[0].Response != "an answer" || d.Log[2].Status != 204 {
		t.Errorf("got %+v, want two failures and a success", d)
	}
}

func TestEventIsGivenUp(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	h.receiver.answers(500)
	w := h.subscribe()
	h.publish("one")
	h.pass(90 * time.Hour)
	if d := h.delivered(w)[0]; d.State != webhook.Failed || d.Tries != webhook.Attempts() || len(h.receiver.got) != webhook.Attempts() {
		t.Errorf("got %+v after %d requests, want it failed after %d", d, len(h.receiver.got), webhook.Attempts())
	}
	if v := h.view(w); v.Disabled != nil || v.Progress.Pending != 0 || !v.Progress.Health.Warned {
		t.Errorf("got %+v, want a live webhook after a warning", v)
	}
	h.pass(logRetentionOver)
	if log := h.delivered(w); len(log) != 0 {
		t.Errorf("got %+v after the retention of the log, want nothing", log)
	}
}

// TestFailuresAreRecovered redelivers the failed and the missed events since a time, once.
func TestFailuresAreRecovered(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	w := h.subscribe()
	again := func(since time.Time, want int) {
		t.Helper()
		got, err := h.webhooks.RedeliverFailed(t.Context(), subscriber, w.ID, since)
		if want == 0 && !fault.Is(err, fault.Unprocessable) || want > 0 && (err != nil || got.Total != want) {
			t.Fatalf("got %+v, %v, want %d events", got, err, want)
		}
		h.pass(time.Minute)
	}
	start := h.clock.Now()
	h.publish("one")
	h.work()
	again(start, 0)
	h.receiver.answers(500)
	h.publish("two")
	h.pass(time.Hour)
	later := h.clock.Now()
	h.publish("three")
	h.pass(90 * time.Hour)
	h.receiver.answers(204)
	h.pass(time.Hour)
	h.publish("four")
	h.pass(time.Minute)
	h.receiver.tasks()
	again(later, 1)
	if got := h.receiver.tasks(); fmt.Sprint(got) != "[three]" {
		t.Errorf("got %v, want what has failed since then", got)
	}
	again(start, 1)
	if got := h.receiver.tasks(); fmt.Sprint(got) != "[two]" {
		t.Errorf("got %v, want what has failed and was not recovered", got)
	}
	again(start, 0)
	h.receiver.answers(410)
	h.publish("five")
	h.work() // disables the webhook
	h.publish("six", "seven")
	h.receiver.answers(204)
	_, err := h.webhooks.Change(t.Context(), subscriber, w.ID, change.Precondition{}, func(in delivery.WebhookSettings) (delivery.WebhookSettings, bool, error) {
		return in, true, nil
	})
	h.ok(err)
	h.publish("eight")
	h.pass(time.Hour)
	h.receiver.tasks()
	for _, want := range []int{3, 0} {
		again(start, want)
	}
	tasks := h.receiver.tasks()
	if slices.Sort(tasks); fmt.Sprint(tasks) != "[five seven six]" {
		t.Errorf("got %v, want what has failed and what was missed", tasks)
	}
	if _, err := h.webhooks.RedeliverFailed(t.Context(), subscriber, w.ID, h.clock.Now().Add(time.Second)); !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("got %v for a time in the future, want it refused", err)
	}
}

// logRetentionOver is longer than the retention of the log.
const logRetentionOver = delivery.LogRetention + time.Hour

// TestReceiverThatIsGoneIsDisabled answers 410, and follows no redirect before.
func TestReceiverThatIsGoneIsDisabled(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	h.receiver.answers(307, "Location", h.receiver.URL+"/other")
	w := h.subscribe()
	h.publish("one")
	h.work()
	if d := h.delivered(w)[0]; len(h.receiver.got) != 1 || d.State != webhook.Pending || d.Log[0].Status != 307 {
		t.Fatalf("got %+v after %d requests, want a failed attempt", d, len(h.receiver.got))
	}
	h.receiver.answers(410)
	h.pass(10 * time.Second)
	v := h.view(w)
	if v.Disabled == nil || v.Disabled.Reason != webhook.ReasonGone || h.delivered(w)[0].State != webhook.Failed {
		t.Fatalf("got %+v, want it disabled because the receiver is gone", v)
	}
	last := h.store.notes[len(h.store.notes)-1]
	if last.Policy.Reason != "receiver_gone" || last.Policy.ID != w.ID || last.Policy.Resource != "webhook" || last.Policy.Before == last.Policy.After || last.Actor.Subject != "service/sweep" {
		t.Errorf("got event %+v of %+v, want the reason", last.Policy, last.Actor)
	}
	h.publish("two")
	h.pass(time.Hour)
	if len(h.receiver.got) != 2 {
		t.Errorf("got %d requests, want none to a disabled webhook", len(h.receiver.got))
	}
}

// TestLostReceiverIsDisabled publishes an event each hour, to a receiver that fails.
func TestLostReceiverIsDisabled(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	h.receiver.answers(500)
	w := h.subscribe()
	reasons := map[webhook.Reason]int{}
	for hour := range 126 {
		h.publish("one")
		h.pass(time.Hour)
		for _, note := range h.store.notes[1:] {
			if reason := webhook.Reason(note.Policy.Reason); reasons[reason] == 0 {
				reasons[reason] = hour + 1
			}
		}
	}
	if at := reasons[webhook.ReasonFailing]; at < 24 || at > 26 {
		t.Errorf("got a warning after %d hours, want 24", at)
	}
	if at := reasons[webhook.ReasonFailed]; at < 120 || at > 122 || h.view(w).Disabled == nil {
		t.Errorf("got it disabled after %d hours, want 120", at)
	}
	if len(h.store.notes) != 3 {
		t.Errorf("got events %+v, want its creation, the warning and the end", h.store.notes)
	}
	if n := len(h.receiver.got); n < 126 || n > 5000 {
		t.Errorf("got %d requests, want a receiver that fails called less often", n)
	}
}

func TestReceiverSlowsDeliveries(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	h.receiver.answers(429, "Retry-After", "120")
	h.subscribe(func(in *delivery.WebhookSettings) { in.RateLimit = 1 })
	h.publish("one")
	h.work()
	h.receiver.answers(200)
	h.publish("two", "three")
	h.pass(119 * time.Second)
	if got := h.receiver.tasks(); fmt.Sprint(got) != "[one]" {
		t.Errorf("got %v within two minutes, want no further request", got)
	}
	h.pass(time.Minute)
	if got := h.receiver.tasks(); len(got) != 3 {
		t.Errorf("got %v after it, want all events", got)
	}
}

func TestRateLimitPacesDeliveries(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	h.subscribe(func(in *delivery.WebhookSettings) { in.RateLimit = 2 })
	h.publish(slices.Repeat([]string{"one"}, 20)...)
	h.work()
	for second := range 9 {
		if got, most := len(h.receiver.got), 2+2*second; got > most || got < most-1 {
			t.Errorf("second %d: got %d requests, want %d", second, got, most)
		}
		h.pass(time.Second)
	}
}

func TestPausedEventsAreRedelivered(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	w := h.subscribe()
	pause := func(paused bool) {
		t.Helper()
		_, err := h.webhooks.Change(t.Context(), subscriber, w.ID, change.Precondition{}, func(in delivery.WebhookSettings) (delivery.WebhookSettings, bool, error) {
			in.Paused = paused
			return in, true, nil
		})
		h.ok(err)
	}
	h.publish("one")
	h.work()
	pause(true)
	h.publish("two", "three")
	h.pass(time.Minute)
	pause(false)
	h.publish("four")
	h.pass(time.Minute)
	if got := h.receiver.tasks(); fmt.Sprint(got) != "[one four]" {
		t.Fatalf("got %v, want nothing of the pause", got)
	}
	missed := h.view(w).Progress.Missed
	if len(missed) != 1 || missed[0] != (webhook.Range{From: 2, To: 3}) {
		t.Fatalf("got %+v missed, want 2 to 3", missed)
	}
	for range 2 {
		replay, err := h.webhooks.Redeliver(t.Context(), subscriber, w.ID, webhook.Range{From: 1, To: 3})
		if err != nil || replay.Total != 3 {
			t.Fatalf("got %+v, %v, want three events", replay, err)
		}
	}
	h.work()
	if got, want := h.receiver.got[2].Notifier.Replay, (events.Replay{Ordinal: 3, Total: 3}); len(h.receiver.got) != 3 || got == nil || got.Total != want.Total {
		t.Errorf("got %+v in %d events, want a replay of 3", got, len(h.receiver.got))
	}
	tasks := h.receiver.tasks()
	if slices.Sort(tasks); fmt.Sprint(tasks) != "[one three two]" {
		t.Errorf("got %v, want the events of the range", tasks)
	}
	if log := h.delivered(w); len(log) != 4 || len(log[0].Log) != 2 {
		t.Errorf("got %+v, want both attempts of the first event", log)
	}
	for name, r := range map[string]webhook.Range{"position 9": {From: 9, To: 9}, "to": {From: 2, To: 1}} {
		if _, err := h.webhooks.Redeliver(t.Context(), subscriber, w.ID, r); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: got %v, want a problem of %s", r, err, name)
		}
	}
}

// TestOrderedEventsOfATaskFollowEachOther fails the deliveries of one task: its later events
// wait, those of other tasks do not.
func TestOrderedEventsOfATaskFollowEachOther(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	failing := true
	h.receiver.answer = func(w http.ResponseWriter, _ *http.Request, e events.Envelope) {
		if e.Job.ID == "a" && failing {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
	w := h.subscribe(func(in *delivery.WebhookSettings) { in.Ordered = true })
	h.publish("a", "b", "a", "b", "a", "c", "b", "c")
	h.work()
	got := h.receiver.tasks()
	if slices.Sort(got); fmt.Sprint(got) != "[a b b b c c]" {
		t.Fatalf("got %v, want one attempt of a and all others", got)
	}
	h.receiver.mu.Lock()
	failing = false
	h.receiver.mu.Unlock()
	h.pass(10 * time.Second)
	var seqs []int
	for _, e := range h.receiver.got {
		seqs = append(seqs, e.Job.Seq)
	}
	if fmt.Sprint(seqs) != "[1 3 5]" || h.view(w).Progress.Pending != 0 {
		t.Errorf("got the events %v of a, want 1, 3 and 5 in order", seqs)
	}
}
