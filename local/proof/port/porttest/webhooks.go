package porttest

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// Webhooks is the conformance suite of port.WebhookStore. open returns a new, empty store whose
// clock is between the years 2002 and 2100. It also returns a function that waits until the
// lists of the store are up to date, or nil if they always are.
func Webhooks(t *testing.T, open func(t *testing.T) (s port.WebhookStore, settle func())) {
	onStores(t, open, func(s onStore[port.WebhookStore]) *webhookTest { return &webhookTest{s} }, map[string]func(*webhookTest){
		"webhook is read back":                  webhookIsReadBack,
		"one of many changes of a webhook wins": webhookRace,
		"webhook and progress are atomic":       webhookAndProgress,
		"deleted webhook is gone":               deletedWebhookIsGone,
		"webhooks in pages":                     webhooksInPages,
		"due webhooks are found":                webhooksAreDue,
		"deliveries follow their progress":      deliveriesFollowProgress,
		"pending deliveries are in order":       pendingInOrder,
		"log in pages":                          logInPages,
		"expired deliveries are not found":      expiredDeliveries,
	})
}

type webhookTest struct{ onStore[port.WebhookStore] }

func (s *webhookTest) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *webhookTest) conflict(err error) {
	s.Helper()
	if !errors.Is(err, port.ErrConflict) {
		s.Fatalf("got %v, want ErrConflict", err)
	}
}

func (s *webhookTest) same(want, got any) {
	s.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		s.Fatalf("want -, got +\n%s", diff)
	}
}

// sample returns a valid new webhook and its progress.
func (s *webhookTest) sample(tenant, name string) (webhook.Webhook, webhook.Progress) {
	w := webhook.Webhook{
		Tenant: tenant, ID: webhook.ID(s.now, tenant, name), URL: "https://hooks.example.org/" + name,
		Filter: events.Filter{Types: []string{"job.*"}, ProjectID: "web"}, Description: name, Ordered: true, RateLimit: 7,
		CreatedAt: s.now, CreatedBy: "token:abc123", UpdatedAt: s.now,
		Secrets: []webhook.Secret{{Text: "whsec_" + name, CreatedAt: s.now}},
	}
	return w, w.Begin(5, "epoch", s.now)
}

// create stores a new webhook and returns the stored records.
func (s *webhookTest) create(tenant, name string) (webhook.Webhook, webhook.Progress) {
	s.Helper()
	w, p := s.sample(tenant, name)
	s.ok(s.store.SaveWebhook(s.ctx, w, &p))
	w.Version, p.Version = 1, 1
	return w, p
}

// want checks that the store returns exactly these records.
func (s *webhookTest) want(w webhook.Webhook, p webhook.Progress) {
	s.Helper()
	gotW, err := s.store.LoadWebhook(s.ctx, w.Ref())
	s.ok(err)
	s.same(w, gotW)
	gotP, err := s.store.Progress(s.ctx, w.Ref())
	s.ok(err)
	s.same(p, gotP)
}

func (s *webhookTest) wantNone(ref webhook.Ref) {
	s.Helper()
	if got, err := s.store.LoadWebhook(s.ctx, ref); !errors.Is(err, port.ErrNotFound) {
		s.Fatalf("got %+v, %v; want ErrNotFound", got, err)
	}
	if got, err := s.store.Progress(s.ctx, ref); !errors.Is(err, port.ErrNotFound) {
		s.Fatalf("got %+v, %v; want ErrNotFound", got, err)
	}
}

// delivery returns a delivery with the position and state.
func (s *webhookTest) delivery(position int64, state webhook.State) webhook.Delivery {
	d := webhook.Delivery{
		Position: position, EventID: events.ID(fmt.Sprintf("%026d", position)), EventType: "job.failed", TaskID: "job_1", State: state, Tries: 1,
		Log: []webhook.Attempt{{At: s.now, Status: 500, LatencyMS: 12, Response: "no"}},
	}
	if state == webhook.Pending {
		d.Due = s.now.Add(time.Minute)
	} else {
		d.ExpiresAt = s.now.Add(200 * 365 * 24 * time.Hour)
	}
	return d
}

// save stores deliveries and returns the stored progress.
func (s *webhookTest) save(p webhook.Progress, deliveries ...webhook.Delivery) webhook.Progress {
	s.Helper()
	s.ok(s.store.SaveDeliveries(s.ctx, p, deliveries...))
	p.Version++
	return p
}

func webhookIsReadBack(s *webhookTest) {
	w, _ := s.sample("acme", "one")
	s.wantNone(w.Ref())
	w, p := s.create("acme", "one")
	s.want(w, p)
	s.wantNone(webhook.Ref{Tenant: "zenith", ID: w.ID})
	again, fresh := s.sample("acme", "one")
	s.conflict(s.store.SaveWebhook(s.ctx, again, &fresh))
	for range 3 {
		stale := w
		w.Description += "x"
		w.Secrets = append(w.Secrets, webhook.Secret{Text: "whsec_more", CreatedAt: s.now, ExpiresAt: s.now.Add(time.Hour)})
		s.ok(s.store.SaveWebhook(s.ctx, w, nil))
		w.Version++
		s.want(w, p)
		s.conflict(s.store.SaveWebhook(s.ctx, stale, nil))
	}
	unknown, _ := s.sample("acme", "unknown")
	unknown.Version = 1
	s.conflict(s.store.SaveWebhook(s.ctx, unknown, nil))
	s.wantNone(unknown.Ref())
}

func webhookRace(s *webhookTest) {
	for version := range int64(3) {
		w, p := s.sample("acme", "one")
		if version > 0 {
			var err error
			w, err = s.store.LoadWebhook(s.ctx, w.Ref())
			s.ok(err)
			p, err = s.store.Progress(s.ctx, w.Ref())
			s.ok(err)
		}
		const callers = 8
		results := make(chan error, callers)
		for i := range callers {
			go func() {
				w := w
				w.RateLimit = i
				results <- s.store.SaveWebhook(s.ctx, w, &p)
			}()
		}
		won := 0
		for range callers {
			if err := <-results; err == nil {
				won++
			} else {
				s.conflict(err)
			}
		}
		if won != 1 {
			s.Fatalf("got %d successful changes, want 1", won)
		}
	}
}

// webhookAndProgress writes both records together. A conflict of one must leave the other
// unchanged.
func webhookAndProgress(s *webhookTest) {
	w, p := s.create("acme", "one")
	stale := p
	p = s.save(p)
	changed := w
	changed.Paused = true
	s.conflict(s.store.SaveWebhook(s.ctx, changed, &stale))
	s.want(w, p)
	older := w
	s.ok(s.store.SaveWebhook(s.ctx, changed, nil))
	changed.Version++
	next := p.Enable(9, s.now)
	s.conflict(s.store.SaveWebhook(s.ctx, older, &next))
	s.want(changed, p)
	s.ok(s.store.SaveWebhook(s.ctx, changed, &next))
	changed.Version++
	next.Version++
	s.want(changed, next)
}

func deletedWebhookIsGone(s *webhookTest) {
	w, p := s.create("acme", "one")
	other, otherP := s.create("acme", "two")
	p = s.save(p, s.delivery(6, webhook.Pending), s.delivery(7, webhook.Delivered))
	stale := w
	stale.Version++
	s.conflict(s.store.DeleteWebhook(s.ctx, stale))
	s.want(w, p)
	s.ok(s.store.DeleteWebhook(s.ctx, w))
	s.wantNone(w.Ref())
	s.want(other, otherP)
	s.conflict(s.store.DeleteWebhook(s.ctx, w))
	s.conflict(s.store.SaveWebhook(s.ctx, w, nil))
	s.conflict(s.store.SaveDeliveries(s.ctx, p, s.delivery(8, webhook.Pending)))
	s.wantNone(w.Ref())
	if got, err := s.store.Deliveries(s.ctx, w.Ref(), "", math.MaxInt64, 10); err != nil || len(got) != 0 {
		s.Fatalf("got %v, %v after the deletion, want no deliveries", got, err)
	}
	s.settle()
	if due, _, err := s.store.WebhooksDue(s.ctx, s.now.Add(time.Hour), "", 10); err != nil || len(due) != 1 {
		s.Fatalf("got %v, %v, want the other webhook", due, err)
	}
}

func webhooksInPages(s *webhookTest) {
	want := map[string]webhook.Webhook{}
	for i := range 11 {
		w, _ := s.create("acme", fmt.Sprint(i))
		want[w.ID] = w
	}
	s.create("zenith", "1")
	s.settle()
	for _, limit := range []int{1, 3, 11, 12} {
		got, last := map[string]webhook.Webhook{}, ""
		for page := (port.Page{Limit: limit}); ; {
			found, next, err := s.store.Webhooks(s.ctx, "acme", page)
			s.ok(err)
			for _, w := range found {
				if w.ID <= last {
					s.Fatalf("got %s after %s, want them in order", w.ID, last)
				}
				got[w.ID], last = w, w.ID
			}
			if page.Cursor = next; next == "" {
				break
			}
		}
		s.same(want, got)
	}
	for _, limit := range []int{0, 1001} {
		if _, _, err := s.store.Webhooks(s.ctx, "acme", port.Page{Limit: limit}); err == nil {
			s.Errorf("limit %d: got no error", limit)
		}
	}
}

func webhooksAreDue(s *webhookTest) {
	start := s.now
	var want []webhook.Ref
	for i := range 7 {
		w, p := s.create([]string{"acme", "zenith"}[i%2], fmt.Sprint(9-i))
		p.WakeAt = start.Add(time.Duration(i) * time.Minute)
		s.save(p)
		want = append(want, w.Ref())
	}
	s.settle()
	due := func(now time.Time, limit int) (all []webhook.Ref) {
		s.Helper()
		for after := ""; ; {
			refs, next, err := s.store.WebhooksDue(s.ctx, now, after, limit)
			s.ok(err)
			all = append(all, refs...)
			if after = next; next == "" {
				return all
			}
		}
	}
	for _, limit := range []int{1, 2, 7, 8} {
		s.same(want[:4], due(start.Add(3*time.Minute+2*time.Second), limit))
		s.same(want, due(start.Add(time.Hour), limit))
	}
	if got := due(start.Add(-2*time.Second), 10); len(got) != 0 {
		s.Errorf("before the first: got %v", got)
	}
	p, err := s.store.Progress(s.ctx, want[0])
	s.ok(err)
	s.save(p.Release(time.Time{}, start))
	s.settle()
	s.same(want[1:], due(start.Add(30*time.Minute), 10))
}
