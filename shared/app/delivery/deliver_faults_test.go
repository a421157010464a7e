package delivery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
)

// TestWorkersShareAWebhook delivers by four workers at once: each event arrives once.
func TestWorkersShareAWebhook(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	w := h.subscribe()
	h.append(slices.Repeat([]string{"one"}, 100)...)
	var workers sync.WaitGroup
	for i := range 4 {
		worker := h.worker(fmt.Sprint("worker-", i))
		workers.Go(func() {
			for range 5 {
				if err := worker.Deliver(context.Background(), w.Ref()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	h.pass(time.Minute)
	seen := map[string]int{}
	for _, e := range h.receiver.got {
		seen[e.EventID]++
	}
	if len(seen) != 100 || len(h.receiver.got) != 100 {
		t.Errorf("got %d requests for %d events, want 100 for 100", len(h.receiver.got), len(seen))
	}
}

// TestFaultsLoseNoEvent fails calls of the store, the queue and the receiver in both ways,
// and ends workers within their batches: each event arrives.
func TestFaultsLoseNoEvent(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			h := withWebhooks(t)
			n, refused := 0, map[string]int{} // at most two refusals of an event, so that the backoff stays short
			h.receiver.answer = func(w http.ResponseWriter, _ *http.Request, e events.Envelope) {
				h.receiver.mu.Lock()
				defer h.receiver.mu.Unlock()
				if n++; n%4 == int(seed%4) && refused[e.EventID] < 2 {
					refused[e.EventID]++
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}
			w := h.subscribe(func(in *delivery.WebhookSettings) { in.Ordered = seed%2 == 0 })
			h.wakes = fake.NewWakes(h.clock, fake.Seeded(seed, 0.2))
			faulty := fake.NewWebhooks(h.store, fake.Seeded(seed, 0.15), func(err error) { t.Error(err) })
			h.subs = delivery.NewSubscriptions(faulty, h.feed, h.wakes, json1, h.clock, discard, &seededRandom{})
			for i := range 30 {
				h.append("a", "b")
				h.delivery = h.worker(fmt.Sprint("worker-", i))
				h.dispatch = delivery.NewDispatch(h.delivery, delivery.NoTurns{})
				if err := h.dispatch.Dispatch(t.Context(), subscriber.Tenant); err != nil {
					t.Log(err)
				}
				h.pass(10 * time.Second)
			}
			h.pass(8 * time.Hour)
			seen := map[string]bool{}
			for _, e := range h.receiver.got {
				seen[e.EventID] = true
			}
			log := h.delivered(w)
			if len(seen) != 60 || len(log) != 60 {
				t.Errorf("got %d events and %d deliveries, want 60", len(seen), len(log))
			}
			for _, d := range log {
				if d.State != webhook.Delivered {
					t.Errorf("got %+v, want it delivered", d)
				}
			}
		})
	}
}

func json1(w webhook.Webhook) ([]byte, error) { return json.Marshal(w) }

// TestStopKeepsTheBatch ends a worker while a receiver hangs: what was answered is stored,
// and the rest is sent again.
func TestStopKeepsTheBatch(t *testing.T) {
	t.Parallel()
	h := withWebhooks(t)
	ctx, stop := context.WithCancel(t.Context())
	arrived := make(chan struct{})
	var once sync.Once
	h.receiver.answer = func(_ http.ResponseWriter, r *http.Request, e events.Envelope) {
		if e.Job.ID == "hangs" {
			once.Do(func() { close(arrived) })
			if ctx.Err() == nil {
				<-r.Context().Done()
			}
		}
	}
	w := h.subscribe()
	h.append("a", "hangs", "b")
	done := make(chan error)
	go func() { done <- h.delivery.Deliver(ctx, w.Ref()) }()
	<-arrived
	for answered := 0; answered < 2; {
		h.receiver.mu.Lock()
		answered = len(h.receiver.got) - 1
		h.receiver.mu.Unlock()
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if v := h.view(w); v.Progress.Cursor != 3 || v.Progress.Pending == 0 || v.Progress.Lease.Owner != "" {
		t.Errorf("got %+v, want the interrupted event pending and no lease", v.Progress)
	}
	h.receiver.mu.Lock()
	h.receiver.answer = nil
	h.receiver.mu.Unlock()
	h.pass(time.Minute)
	for _, d := range h.delivered(w) {
		if d.State != webhook.Delivered {
			t.Errorf("got %+v, want it delivered", d)
		}
	}
}
