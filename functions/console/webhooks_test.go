package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sortie-dev/sortie/functions/webhooks"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// hooked is a home with webhooks and their receiver.
type hooked struct {
	*home
	webhooks *apitest.Webhooks
	receiver *httptest.Server
	// status is the answer of the receiver, and requests counts its requests.
	status, requests atomic.Int64
}

// answerText is the body of the answers of the receiver.
const answerText = `<script>alert(1)</script>`

func setupWebhooks(t *testing.T) *hooked {
	t.Helper()
	s := &hooked{}
	s.status.Store(http.StatusOK)
	s.receiver = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.requests.Add(1)
		w.WriteHeader(int(s.status.Load()))
		_, _ = w.Write([]byte(answerText))
	}))
	t.Cleanup(s.receiver.Close)
	s.home = setup(t, func(parts apitest.Parts, _ *app.System) []httpkit.Route {
		s.webhooks = apitest.NewWebhooks(t, parts)
		return append(webhooks.Routes(s.webhooks.Webhooks), webhooks.ReplayRoutes(delivery.NewReplays(s.webhooks.Webhooks, true))...)
	})
	return s
}

// create creates a webhook and returns its id.
func (s *hooked) create(t *testing.T, description string) string {
	t.Helper()
	text, err := json.Marshal(contract.WebhookSettings{URL: s.receiver.URL + "/in", Description: description})
	if err != nil {
		t.Fatal(err)
	}
	answer := s.Call(t, http.MethodPost, "/v1/webhooks", string(text), "Authorization", "Bearer "+ownerToken)
	var created contract.WebhookDetail
	if err := json.Unmarshal([]byte(answer.Body), &created); err != nil || answer.Status != http.StatusCreated {
		t.Fatalf("got %d %s, %v", answer.Status, answer.Body, err)
	}
	return created.ID
}

// publish appends an event and delivers it.
func (s *hooked) publish(t *testing.T, id string) {
	t.Helper()
	s.webhooks.Publish(t)
	if err := s.webhooks.Delivery.Deliver(t.Context(), webhook.Ref{Tenant: apitest.Tenant, ID: id}); err != nil {
		t.Fatal(err)
	}
}

// stored returns a webhook.
func (s *hooked) stored(t *testing.T, id string) contract.WebhookDetail {
	t.Helper()
	var w contract.WebhookDetail
	answer := s.Call(t, http.MethodGet, "/v1/webhooks/"+id, "", "Authorization", "Bearer "+ownerToken)
	if err := json.Unmarshal([]byte(answer.Body), &w); err != nil || answer.Status != http.StatusOK {
		t.Fatalf("got %d %s, %v", answer.Status, answer.Body, err)
	}
	return w
}

var secretText = regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`)

func TestSecretIsShownOnce(t *testing.T) {
	t.Parallel()
	s := setupWebhooks(t)
	b := s.signedIn(t, ownerToken)
	text := b.page("/console/webhooks", "There are no webhooks", "sortie webhooks create", "Add the webhook")
	key := regexp.MustCompile(`name="key" value="([^"]+)"`).FindStringSubmatch(text)[1]
	var id string
	for try, want := range []int{1, 0} { // a form that is sent twice
		answer := b.post("/console/webhooks", "url", s.receiver.URL, "eventTypes", "job.failed, schedule.*", "description", "ops", "key", key)
		if answer.Status != http.StatusOK || len(secretText.FindAllString(answer.Body, -1)) != want || answer.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf("try %d: got %d %s, want %d secrets that no cache stores", try, answer.Status, mainPart(answer.Body), want)
		}
		id = regexp.MustCompile(`whk_[A-Z0-9]+`).FindString(answer.Body)
	}
	page := "/console/webhooks/" + id
	text = b.page(page, "Secrets", "signs", "job.failed", "schedule.*", "Send a test", "sortie webhooks show "+id)
	tag := regexp.MustCompile(`name="tag" value="([^"]+)"`).FindStringSubmatch(text)[1]
	tag = strings.ReplaceAll(tag, "&#34;", `"`)
	answer := b.post(page+"/rotate", "tag", tag)
	if answer.Status != http.StatusOK || len(secretText.FindAllString(answer.Body, -1)) != 1 || len(s.stored(t, id).Secrets) != 2 {
		t.Errorf("got %d %s, want another secret", answer.Status, mainPart(answer.Body))
	}
	if answer := b.post(page+"/rotate", "tag", tag); answer.Status != http.StatusPreconditionFailed || len(s.stored(t, id).Secrets) != 2 {
		t.Errorf("got %d for a form that is sent twice, want 412", answer.Status)
	}
	for _, path := range []string{page, "/console/webhooks"} {
		if text := b.page(path); secretText.MatchString(text) {
			t.Errorf("%s: got a secret", path)
		}
	}
	if answer := b.post("/console/webhooks", "url", "ftp://example.org"); answer.Status != http.StatusUnprocessableEntity || !strings.Contains(answer.Body, "<code>url</code>") {
		t.Errorf("got %d %s, want a page about url", answer.Status, mainPart(answer.Body))
	}
}

func TestWebhookIsPausedTestedAndDeleted(t *testing.T) {
	t.Parallel()
	s := setupWebhooks(t)
	id := s.create(t, "ops")
	b, page := s.signedIn(t, ownerToken), "/console/webhooks/"+id
	b.page(page, "/pause\"")
	for _, action := range []string{"pause", "resume"} {
		answer := b.post(page + "/" + action)
		if answer.Status != http.StatusSeeOther || s.stored(t, id).Paused != (action == "pause") {
			t.Errorf("%s: got %d %s", action, answer.Status, answer.Body)
		}
		b.page(answer.Header.Get("Location"), `class="done"`, map[string]string{"pause": "Paused", "resume": "Active"}[action])
	}
	if answer := b.post(page + "/test"); answer.Status != http.StatusOK || !strings.Contains(answer.Body, "Accepted") || s.requests.Load() != 1 {
		t.Errorf("got %d %s, want an accepted test", answer.Status, mainPart(answer.Body))
	}
	s.status.Store(http.StatusTeapot)
	if answer := b.post(page + "/test"); answer.Status != http.StatusOK || !strings.Contains(answer.Body, "Not accepted") || !strings.Contains(answer.Body, "418") || strings.Contains(answer.Body, "<script>alert") {
		t.Errorf("got %d %s, want a refused test", answer.Status, mainPart(answer.Body))
	}
	if answer := b.post(page+"/delete", "confirm", "ops"); answer.Status != http.StatusBadRequest {
		t.Errorf("got %d without the id, want 400", answer.Status)
	}
	s.stored(t, id)
	if answer := b.post(page+"/delete", "confirm", id); answer.Header.Get("Location") != "/console/webhooks?done=webhook-deleted" {
		t.Errorf("got %d %s, want the list", answer.Status, answer.Body)
	}
	b.page("/console/webhooks", "There are no webhooks")
}

func TestDeliveriesAreSentAgain(t *testing.T) {
	t.Parallel()
	s := setupWebhooks(t)
	id := s.create(t, "")
	b, page := s.signedIn(t, ownerToken), "/console/webhooks/"+id
	s.publish(t, id)
	s.status.Store(http.StatusInternalServerError)
	s.publish(t, id)
	text := b.page(page, "Delivered", "Pending", "<b>200</b>", "<b>500</b>", "policy.updated", `href="../events/2"`, "Redeliver", "Failures in a row")
	if strings.Contains(text, "<script>alert") {
		t.Error("got the response of the receiver in the page as it is")
	}
	b.page("/console/webhooks", id)
	if text := b.page(page+"?state=delivered", "<b>200</b>"); strings.Contains(text, "<b>500</b>") {
		t.Error("got a delivery in another state")
	}
	if answer := b.get(page + "?state=none"); answer.Status != http.StatusBadRequest {
		t.Errorf("got %d for an unknown state, want 400", answer.Status)
	}
	s.status.Store(http.StatusOK)
	before := s.requests.Load()
	if answer := b.post(page+"/redeliver", "position", "2"); answer.Header.Get("Location") != page+"?done=redeliver" {
		t.Fatalf("got %d %s, want the webhook", answer.Status, answer.Body)
	}
	b.page(page+"?done=redeliver", "The events are sent again", "0 of 1 events, positions 2 to 2")
	if err := s.webhooks.Delivery.Deliver(t.Context(), webhook.Ref{Tenant: apitest.Tenant, ID: id}); err != nil || s.requests.Load() == before {
		t.Errorf("got %d requests, %v, want another one", s.requests.Load()-before, err)
	}
	answer := b.post(page+"/replay", "from", "earliest", "key", "k")
	if answer.Status != http.StatusOK || !strings.Contains(answer.Body, "3 events are sent again") {
		t.Errorf("got %d %s, want a replay", answer.Status, mainPart(answer.Body))
	}
	for _, fields := range [][]string{{"position", "x"}, {"since", "yesterday"}, {}} {
		if answer := b.post(page+"/redeliver", fields...); answer.Status != http.StatusBadRequest {
			t.Errorf("%v: got %d, want 400", fields, answer.Status)
		}
	}
}

// TestFailedDeliveriesAreCountedBefore previews a redelivery of what failed, and starts it.
func TestFailedDeliveriesAreCountedBefore(t *testing.T) {
	t.Parallel()
	s := setupWebhooks(t)
	id := s.create(t, "")
	b, page := s.signedIn(t, ownerToken), "/console/webhooks/"+id
	if text := b.page(page+"/recover?since=1h", "<b>0</b> deliveries"); strings.Contains(text, "Send them again") {
		t.Error("got a form that sends nothing")
	}
	if answer := b.post(page+"/redeliver", "since", s.Clock.Now().Add(-1).Format("2006-01-02T15:04:05Z07:00")); answer.Status != http.StatusUnprocessableEntity {
		t.Errorf("got %d, want that nothing has failed", answer.Status)
	}
	s.status.Store(http.StatusGone) // it disables the webhook, so its delivery fails
	s.publish(t, id)
	if w := s.stored(t, id); w.Status != contract.WebhookDisabled {
		t.Fatalf("got %+v, want a disabled webhook", w)
	}
	b.page("/console/webhooks", "Disabled")
	b.page(page, "Sortie disabled the webhook", "/resume\"")
	text := b.page(page+"/recover?since="+url.QueryEscape("0001-01-01T00:00:00Z"), "<b>1</b> deliveries", "policy.updated", "Send them again")
	since := regexp.MustCompile(`name="since" value="([^"]+)"`).FindStringSubmatch(text)[1]
	s.status.Store(http.StatusOK)
	b.post(page + "/resume")
	if answer := b.post(page+"/redeliver", "since", since); answer.Header.Get("Location") != page+"?done=redeliver" {
		t.Fatalf("got %d %s, want the webhook", answer.Status, answer.Body)
	}
	if again := s.stored(t, id).Progress.Redeliveries; len(again) != 1 || again[0].Events != 1 {
		t.Errorf("got %+v, want the previewed event", again)
	}
	if answer := b.get(page + "/recover?since=2h"); answer.Status != http.StatusBadRequest {
		t.Errorf("got %d, want 400", answer.Status)
	}
}

func TestWebhooksNeedTheirScopeAndTenant(t *testing.T) {
	t.Parallel()
	s := setupWebhooks(t)
	id := s.create(t, "")
	reader, other := s.signedIn(t, readerToken), s.signedIn(t, otherToken)
	for _, path := range []string{"/console/webhooks", "/console/webhooks/" + id, "/console/webhooks/" + id + "/recover"} {
		if answer := reader.get(path); answer.Status != http.StatusForbidden {
			t.Errorf("%s: got %d for a reader, want 403", path, answer.Status)
		}
		if answer := other.get(path); path != "/console/webhooks" && answer.Status != http.StatusNotFound {
			t.Errorf("%s: got %d of another tenant, want 404", path, answer.Status)
		}
	}
	for _, action := range []string{"pause", "resume", "rotate", "test", "redeliver", "replay", "delete"} {
		path := "/console/webhooks/" + id + "/" + action
		fields := []string{"position", "1", "from", "earliest", "confirm", id}
		if answer := reader.post(path, fields...); answer.Status != http.StatusForbidden {
			t.Errorf("%s: got %d for a reader, want 403", action, answer.Status)
		}
		if answer := other.post(path, fields...); answer.Status != http.StatusNotFound {
			t.Errorf("%s: got %d of another tenant, want 404", action, answer.Status)
		}
	}
	if w := s.stored(t, id); w.Paused || len(w.Secrets) != 1 || s.requests.Load() != 0 {
		t.Errorf("got %+v, want it unchanged", w)
	}
}

func TestHostileTextsOfWebhooks(t *testing.T) {
	t.Parallel()
	s := setupWebhooks(t)
	b := s.signedIn(t, ownerToken)
	for _, text := range hostile[:7] {
		answer := b.post("/console/webhooks", "url", s.receiver.URL+"/?"+url.QueryEscape(text), "description", text)
		id := regexp.MustCompile(`whk_[A-Z0-9]+`).FindString(answer.Body)
		pages := []string{"/console/webhooks"}
		if id != "" {
			pages = append(pages, "/console/webhooks/"+id, fmt.Sprintf("/console/webhooks/%s/recover", id))
		}
		for _, path := range pages {
			page := b.page(path)
			for _, never := range []string{"<script>alert", "<img", `href="javascript:`, "\u202e", "\x00", "\x1b"} {
				if strings.Contains(page, never) {
					t.Errorf("%q: %s: got %q in the page", text, path, never)
				}
			}
		}
	}
}
