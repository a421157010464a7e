package webhooks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/webhooks"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// stage serves the routes of webhooks with a receiver on loopback.
type stage struct {
	*apitest.Stage
	webhooks *apitest.Webhooks
	receiver *httptest.Server

	mu     sync.Mutex
	status int
}

func setup(t *testing.T, change ...func(*apitest.Settings)) *stage {
	t.Helper()
	s := &stage{status: http.StatusOK}
	s.receiver = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		w.WriteHeader(s.status)
	}))
	t.Cleanup(s.receiver.Close)
	parts := apitest.NewParts(t)
	s.webhooks = apitest.NewWebhooks(t, parts)
	s.Stage = apitest.New(t, parts, func(*app.System) []httpkit.Route {
		return append(webhooks.Routes(s.webhooks.Webhooks), webhooks.ReplayRoutes(delivery.NewReplays(s.webhooks.Webhooks, true))...)
	}, change...)
	return s
}

// publish appends an event and delivers it.
func (s *stage) publish(t *testing.T, id string) {
	t.Helper()
	s.webhooks.Publish(t)
	if err := s.webhooks.Delivery.Deliver(context.Background(), webhook.Ref{Tenant: apitest.Tenant, ID: id}); err != nil {
		t.Fatal(err)
	}
}

// call expects a status and decodes the response.
func call[T any](t *testing.T, s *stage, method, path, body string, status int, headers ...string) (v T, header http.Header) {
	t.Helper()
	answer := s.Call(t, method, path, body, headers...)
	if answer.Status != status {
		t.Fatalf("%s %s %s: got %d %s, want %d", method, path, body, answer.Status, answer.Body, status)
	}
	if answer.Body != "" {
		if err := json.Unmarshal([]byte(answer.Body), &v); err != nil {
			t.Fatalf("%s %s: got %s: %v", method, path, answer.Body, err)
		}
	}
	return v, answer.Header
}

// create returns the path of a new webhook and its secret.
func (s *stage) create(t *testing.T, settings string) (path, secret string) {
	t.Helper()
	w, header := call[contract.WebhookDetail](t, s, "POST", "/v1/webhooks", fmt.Sprintf(`{"url": %q%s}`, s.receiver.URL+"/in", settings), 201)
	if header.Get("Location") != "/v1/webhooks/"+w.ID || !webhook.ValidID(w.ID) {
		t.Fatalf("got %+v at %s, want the path of the webhook", w, header.Get("Location"))
	}
	return header.Get("Location"), w.Secret
}

// TestSecretIsShownOnce reads each response after the webhook was created (EE-5.6).
func TestSecretIsShownOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	path, secret := s.create(t, "")
	if _, err := hook.ParseKey(secret); err != nil || secret == "" {
		t.Fatalf("got secret %q, want one: %v", secret, err)
	}
	rotated, _ := call[contract.WebhookDetail](t, s, "POST", path+"/rotate", "", 200)
	if rotated.Secret == secret || rotated.Secret == "" || len(rotated.Secrets) != 2 || !rotated.Secrets[0].ExpiresAt.Equal(s.Clock.Now().Add(24*time.Hour)) {
		t.Errorf("got %+v, want another secret, and the older one for a day", rotated)
	}
	for _, call := range [][3]string{{"GET", path, ""}, {"GET", "/v1/webhooks", ""}, {"PATCH", path, `{"description": "x"}`}, {"GET", path + "/deliveries", ""}, {"POST", path + "/test", ""}} {
		answer := s.Call(t, call[0], call[1], call[2])
		if answer.Status != 200 || strings.Contains(answer.Body, "whsec_") {
			t.Errorf("%s %s: got %d %s, want no secret", call[0], call[1], answer.Status, answer.Body)
		}
	}
}

func TestRepeatedRequestHasNoSecret(t *testing.T) {
	t.Parallel()
	s := setup(t)
	body := fmt.Sprintf(`{"url": %q}`, s.receiver.URL)
	first, _ := call[contract.WebhookDetail](t, s, "POST", "/v1/webhooks", body, 201, "Idempotency-Key", "k")
	again, _ := call[contract.WebhookDetail](t, s, "POST", "/v1/webhooks", body, 200, "Idempotency-Key", "k")
	if again.ID != first.ID || again.Secret != "" || first.Secret == "" {
		t.Errorf("got %s and %s with secrets %q and %q, want one webhook and one secret", first.ID, again.ID, first.Secret, again.Secret)
	}
	p, _ := call[contract.Problem](t, s, "POST", "/v1/webhooks", fmt.Sprintf(`{"url": %q, "ordered": true}`, s.receiver.URL), 422, "Idempotency-Key", "k")
	if p.Code != "IDEMPOTENCY_MISMATCH" {
		t.Errorf("got code %s, want IDEMPOTENCY_MISMATCH", p.Code)
	}
}

func TestWrongSettingsAreRefused(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for body, want := range map[string]string{
		`{}`: "400 url", `{"url": "http://hooks.example.org/"}`: "422 url", `{"url": "https://10.0.0.1/"}`: "422 url", `{"url": 1}`: "400 url",
		`{"url": "https://a.example.org/", "eventTypes": ["x"]}`: "400 eventTypes", `{"url": "https://a.example.org/", "rateLimit": 1001}`: "400 rateLimit",
		`{"url": "https://a.example.org/", "secret": "x"}`: "400 secret", `{"url": "https://a.example.org/", "paused": "no"}`: "400 paused",
	} {
		var status int
		var field string
		if _, err := fmt.Sscan(want, &status, &field); err != nil {
			t.Fatal(err)
		}
		if p, _ := call[contract.Problem](t, s, "POST", "/v1/webhooks", body, status); p.Field != field {
			t.Errorf("%s: got field %q, want %s", body, p.Field, field)
		}
	}
	if list, _ := call[contract.WebhookList](t, s, "GET", "/v1/webhooks", "", 200); len(list.Webhooks) != 0 {
		t.Errorf("got %+v, want nothing stored", list)
	}
}

func TestPatchMergesSettings(t *testing.T) {
	t.Parallel()
	s := setup(t)
	path, _ := s.create(t, `, "eventTypes": ["job.*"], "description": "d", "jobId": "nightly", "ordered": true`)
	w, header := call[contract.WebhookDetail](t, s, "PATCH", path, `{"description": null, "eventTypes": ["*"], "rateLimit": 5}`, 200, "Content-Type", "application/merge-patch+json")
	if w.Description != "" || w.EventTypes[0] != "*" || w.RateLimit != 5 || w.JobID != "nightly" || !w.Ordered || w.Version != 2 {
		t.Errorf("got %+v, want the merged settings", w)
	}
	for body, status := range map[string]int{`{"url": null}`: 400, `{"x": 1}`: 400, `[1]`: 400, `{"id": "x"}`: 400, `{"url": "https://127.0.0.2/"}`: 422} {
		call[contract.Problem](t, s, "PATCH", path, body, status)
	}
	call[contract.Problem](t, s, "PATCH", path, `{}`, 412, "If-Match", `"1"`)
	call[contract.WebhookDetail](t, s, "PATCH", path, `{"ordered": false}`, 200, "If-Match", header.Get("ETag"))
	call[contract.Problem](t, s, "DELETE", path, "", 412, "If-Match", header.Get("ETag"))
	call[struct{}](t, s, "DELETE", path, "", 204)
	call[contract.Problem](t, s, "GET", path, "", 404)
	call[contract.Problem](t, s, "DELETE", path, "", 404)
}

// TestDeliveriesAreLogged delivers events, one of them again.
func TestDeliveriesAreLogged(t *testing.T) {
	t.Parallel()
	s := setup(t)
	path, _ := s.create(t, "")
	id := strings.TrimPrefix(path, "/v1/webhooks/")
	for range 3 {
		s.publish(t, id)
	}
	s.status = 500
	s.publish(t, id)
	first, _ := call[contract.WebhookDeliveries](t, s, "GET", path+"/deliveries?limit=3", "", 200)
	rest, _ := call[contract.WebhookDeliveries](t, s, "GET", path+"/deliveries?limit=3&cursor="+first.NextCursor, "", 200)
	if len(first.Deliveries) != 3 || len(rest.Deliveries) != 1 || rest.NextCursor != "" || first.Deliveries[0].State != "pending" || first.Deliveries[0].Attempts[0].Status != 500 {
		t.Errorf("got %+v and %+v, want four deliveries, the last one pending", first, rest)
	}
	if list, _ := call[contract.WebhookDeliveries](t, s, "GET", path+"/deliveries?state=pending", "", 200); len(list.Deliveries) != 1 {
		t.Errorf("got %+v, want one pending delivery", list)
	}
	for _, query := range []string{"state=lost", "cursor=x", "cursor=0", "limit=0"} {
		call[contract.Problem](t, s, "GET", path+"/deliveries?"+query, "", 400)
	}
	again, _ := call[contract.Redelivery](t, s, "POST", path+"/redeliver", `{"position": 3}`, 202)
	if again.From != 3 || again.To != 3 || again.Events != 1 {
		t.Errorf("got %+v, want one event", again)
	}
	for body, field := range map[string]string{
		`{}`: "from", `{"from": 1}`: "to", `{"position": 1, "to": 2}`: "position", `{"from": 0, "to": 1}`: "from", `{"from": 3, "to": 2}`: "to", `{"from": 1, "to": 99}`: "to",
		`{"position": 0}`: "position", `{"position": 99}`: "position",
	} {
		if p, _ := call[contract.Problem](t, s, "POST", path+"/redeliver", body, 400); p.Field != field {
			t.Errorf("%s: got field %s, want %s", body, p.Field, field)
		}
	}
	w, _ := call[contract.WebhookDetail](t, s, "GET", path, "", 200)
	if w.Status != "active" || w.Progress.Position != 5 || w.Progress.Pending != 1 || len(w.Progress.Redeliveries) != 1 {
		t.Errorf("got %+v, want a pending delivery and a redelivery", w)
	}
}

// TestScopesOfWebhooks checks that reading needs events:read, and changes need webhooks:write.
func TestScopesOfWebhooks(t *testing.T) {
	t.Parallel()
	for scope, want := range map[access.Scope][2]int{
		access.EventsRead: {200, 403}, access.WebhooksWrite: {403, 400}, access.RunsWrite: {403, 403}, access.Admin: {403, 403},
	} {
		s := setup(t, func(c *apitest.Settings) { c.Server.Local.Scopes = []access.Scope{scope} })
		if got := s.Call(t, "GET", "/v1/webhooks", "").Status; got != want[0] {
			t.Errorf("%s: got %d for the list, want %d", scope, got, want[0])
		}
		if got := s.Call(t, "POST", "/v1/webhooks", "{}").Status; got != want[1] {
			t.Errorf("%s: got %d for a creation, want %d", scope, got, want[1])
		}
	}
}
