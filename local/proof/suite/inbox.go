package suite

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// inboxFolder is the first path segment of webhook URLs.
const inboxFolder = "events"

// inbox collects the events of one webhook.
type inbox struct {
	got []delivered
	// answers are the statuses of the next deliveries. Further deliveries get 204.
	answers []int
}

// delivered is a request of a webhook.
type delivered struct {
	header http.Header
	body   []byte
	at     time.Time
}

func (h *receiver) serveEvent(topic string, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		h.t.Errorf("got %s of %q at %s, %v, want POST of application/json", r.Method, r.Header.Get("Content-Type"), r.URL.Path, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	in := h.inbox(topic)
	in.got = append(in.got, delivered{r.Header.Clone(), body, clock.System{}.Now()})
	status := http.StatusNoContent
	if len(in.answers) > 0 {
		status, in.answers = in.answers[0], in.answers[1:]
	}
	w.WriteHeader(status)
}

// inbox returns the inbox of a topic. The caller holds the mutex.
func (h *receiver) inbox(topic string) *inbox {
	if h.inboxes[topic] == nil {
		h.inboxes[topic] = &inbox{}
	}
	return h.inboxes[topic]
}

// subscription is a webhook of the test.
type subscription struct {
	contract.WebhookDetail

	c *Case
	// path is the path of the webhook, and topic the topic of its inbox.
	path, topic string
	// secrets are the signing secrets, the oldest first.
	secrets []string
	taken   int
}

// inboxTopic is the name of the test's inbox.
const inboxTopic = "in"

// inboxURL returns the address of the test's inbox.
func (c *Case) inboxURL() string {
	return c.hooks.URL + "/" + inboxFolder + "/" + c.topic(inboxTopic)
}

// subscribe creates a webhook for the test's inbox with these settings.
func (c *Case) subscribe(settings contract.WebhookSettings) *subscription {
	c.T.Helper()
	settings.URL = c.inboxURL()
	w, header := send[contract.WebhookDetail](c, http.MethodPost, "/v1/webhooks", string(outside.Encode(c.T, settings)), http.StatusCreated)
	c.subscribed = append(c.subscribed, "/v1/webhooks/"+w.ID)
	if header.Get("Location") != "/v1/webhooks/"+w.ID || w.Secret == "" || w.Status != contract.WebhookActive && !settings.Paused {
		c.T.Fatalf("got %+v at %s, want a webhook with its secret", w, header.Get("Location"))
	}
	return &subscription{WebhookDetail: w, c: c, path: "/v1/webhooks/" + w.ID, topic: c.topic(inboxTopic), secrets: []string{w.Secret}}
}

// removeWebhooks deletes the webhooks of the test.
func (c *Case) removeWebhooks() {
	for _, path := range c.subscribed {
		if answer := c.Call(http.MethodDelete, path, ""); answer.Status != http.StatusNoContent && answer.Status != http.StatusNotFound {
			c.T.Errorf("DELETE %s: got %d %s, want 204 or 404", path, answer.Status, answer.Body)
		}
	}
}

// now reads the webhook.
func (s *subscription) now() contract.WebhookDetail {
	s.c.T.Helper()
	return outside.Get[contract.WebhookDetail](s.c.Client, s.path)
}

// answer sets the statuses of the next deliveries.
func (s *subscription) answer(statuses ...int) {
	s.c.hooks.mu.Lock()
	defer s.c.hooks.mu.Unlock()
	s.c.hooks.inbox(s.topic).answers = statuses
}

// until waits for a delivery for which enough is true. It returns the deliveries since the last
// call, and checks the signatures of each.
func (s *subscription) until(what string, enough func(events.Envelope) bool) (found []events.Envelope) {
	s.c.T.Helper()
	s.c.eventually("delivery of "+what, func() bool {
		found = append(found, s.take()...)
		return slices.ContainsFunc(found, enough)
	})
	return found
}

// take returns the events since the last call.
func (s *subscription) take() (found []events.Envelope) {
	s.c.T.Helper()
	s.c.hooks.mu.Lock()
	fresh := slices.Clone(s.c.hooks.inbox(s.topic).got[s.taken:])
	s.c.hooks.mu.Unlock()
	s.taken += len(fresh)
	for _, d := range fresh {
		e, err := s.read(d)
		if err != nil {
			s.c.T.Errorf("delivery %s: %v", d.body, err)
		}
		found = append(found, e)
	}
	return found
}

func (s *subscription) read(d delivered) (events.Envelope, error) {
	e := envelope(s.c.Client, d.body)
	if err := verifySignatures(d.header, d.body, d.at, s.secrets...); err != nil {
		return e, err
	}
	if id := d.header.Get("Webhook-Id"); id != e.EventID || e.Notifier == nil || e.Notifier.Delivery != events.DeliveryHMAC {
		return e, fmt.Errorf("got the message %s with %+v, want the id of the event and delivery with a signature", id, e.Notifier)
	}
	return e, nil
}

// log returns the delivery log of the webhook, the oldest event first.
func (s *subscription) log(query string) (found []contract.WebhookDelivery) {
	s.c.T.Helper()
	for cursor := ""; ; {
		page := outside.Get[contract.WebhookDeliveries](s.c.Client, s.path+"/deliveries?limit=3&cursor="+cursor+query)
		found = append(found, page.Deliveries...)
		if cursor = page.NextCursor; cursor == "" {
			slices.Reverse(found)
			return found
		}
	}
}

// settled waits until the log has n deliveries and all have ended.
func (s *subscription) settled(n int) (found []contract.WebhookDelivery) {
	s.c.T.Helper()
	s.c.eventually(fmt.Sprintf("log of %d deliveries", n), func() bool {
		found = s.log("")
		return len(found) >= n && !slices.ContainsFunc(found, func(d contract.WebhookDelivery) bool { return d.State == "pending" })
	})
	return found
}

// hidden reports whether a text contains no secret of a webhook.
func hidden(text []byte) bool { return !strings.Contains(string(text), "whsec_") }
