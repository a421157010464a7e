package suite

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func webhooks() []Test {
	return []Test{
		{Name: "webhook delivers signed events", Requires: []Capability{Hooks, AnySource}, Run: webhookDelivers},
		{Name: "webhook is created once and can be changed", Requires: []Capability{Hooks}, Run: webhookIsChanged},
		{Name: "rotated secret signs beside the older one", Requires: []Capability{Hooks, AnySource}, Run: secretIsRotated},
		{Name: "paused webhook misses events, which can be redelivered", Requires: []Capability{Hooks, AnySource}, Run: webhookIsPaused},
		{Name: "export has a webhook of its own", Requires: []Capability{Hooks, ScriptedWorkers}, Run: exportWithAWebhook},
		{Name: "another tenant's webhook is unknown", Requires: []Capability{Hooks, OtherTokens}, Run: foreignWebhook},
	}
}

// ofType returns a condition for until that selects events of a type.
func ofType(kind eventtype.Type) func(events.Envelope) bool {
	return func(e events.Envelope) bool { return e.EventType == kind }
}

// sameEvents reports whether two lists have the same events in any order.
func sameEvents(got, want []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)))
}

func webhookDelivers(c *Case) {
	after := newestCursor(c.Client)
	s := c.subscribe(contract.WebhookSettings{BatchID: c.Batch("one"), EventTypes: []string{"job.*"}, Description: "suite"})
	ping, _ := send[contract.WebhookAttempt](c, http.MethodPost, s.path+"/test", "", http.StatusOK)
	if tested := s.take(); ping.Status != http.StatusNoContent || len(tested) != 1 || tested[0].EventType != eventtype.WebhookTest || tested[0].Policy.Reason != "test" || tested[0].Policy.ID != s.ID {
		c.T.Errorf("got %+v and the events %+v, want a test event with an answer of 204", ping, tested)
	} else {
		c.checkTestEvent(tested[0])
	}
	task := c.StartShort("one")
	c.End(task)
	got := s.until("job.completed", ofType(eventtype.Completed))
	published := c.publishedUntilEnd(after, url.Values{"batchId": {c.Batch("one")}, "types": {"job.*"}}, task)
	log := s.settled(len(published))
	got = append(got, s.take()...)
	if want := eventIDs(published); !sameEvents(eventIDs(got), want) {
		c.T.Errorf("got the events %v, want each of %v once", eventIDs(got), want)
	}
	for i, d := range log {
		if e := published[i]; d.EventID != e.EventID || d.EventType != string(e.EventType) || d.TaskID != task || d.State != "delivered" ||
			d.Tries != 1 || len(d.Attempts) != 1 || d.Attempts[0].Status != http.StatusNoContent {
			c.T.Errorf("delivery %d: got %+v, want one attempt of %s", i, d, e.EventID)
		}
	}
	w := s.now()
	if w.Status != contract.WebhookActive || w.Progress.Pending != 0 || w.Progress.Failures != 0 || w.Progress.LastSuccessAt.IsZero() || w.Secret != "" {
		c.T.Errorf("got %+v, want an active webhook without its secret", w)
	}
	send[struct{}](c, http.MethodDelete, s.path, "", http.StatusNoContent)
	for _, call := range [][2]string{{http.MethodGet, ""}, {http.MethodGet, "/deliveries"}, {http.MethodPost, "/test"}, {http.MethodPost, "/rotate"}, {http.MethodDelete, ""}} {
		send[contract.Problem](c, call[0], s.path+call[1], "", http.StatusNotFound)
	}
}

func webhookIsChanged(c *Case) {
	body := string(outside.Encode(c.T, contract.WebhookSettings{URL: c.inboxURL(), TaskID: "none", Ordered: true}))
	key := []string{"Idempotency-Key", c.Batch("key")}
	first, _ := send[contract.WebhookDetail](c, http.MethodPost, "/v1/webhooks", body, http.StatusCreated, key...)
	path := "/v1/webhooks/" + first.ID
	c.subscribed = append(c.subscribed, path)
	if again, _ := send[contract.WebhookDetail](c, http.MethodPost, "/v1/webhooks", body, http.StatusOK, key...); again.ID != first.ID || again.Secret != "" || first.Secret == "" {
		c.T.Errorf("got %s and %s, want one webhook, whose secret is shown once", first.ID, again.ID)
	}
	other := strings.Replace(body, `"ordered":true`, `"ordered":false`, 1)
	if p, _ := send[contract.Problem](c, http.MethodPost, "/v1/webhooks", other, http.StatusUnprocessableEntity, key...); p.Code != "IDEMPOTENCY_MISMATCH" {
		c.T.Errorf("got %+v, want IDEMPOTENCY_MISMATCH", p)
	}
	changed, header := send[contract.WebhookDetail](c, http.MethodPatch, path, `{"description": "d", "ordered": false, "eventTypes": ["job.*"]}`, http.StatusOK)
	if changed.Description != "d" || changed.Ordered || changed.TaskID != "none" || changed.Version != 2 || changed.URL != first.URL {
		c.T.Errorf("got %+v, want the merged settings in version 2", changed)
	}
	send[contract.Problem](c, http.MethodPatch, path, `{"paused": true}`, http.StatusPreconditionFailed, "If-Match", `"1"`)
	send[contract.WebhookDetail](c, http.MethodPatch, path, `{"description": null}`, http.StatusOK, "If-Match", header.Get("ETag"))
	for call, text := range map[string][]byte{"GET": c.Call(http.MethodGet, path, "").Body, "list": c.Call(http.MethodGet, "/v1/webhooks?limit=1000", "").Body} {
		if !hidden(text) {
			c.T.Errorf("%s: got %s, want no secret", call, text)
		}
	}
	listed := false
	for cursor := ""; ; {
		page := outside.Get[contract.WebhookList](c.Client, "/v1/webhooks?limit=1&cursor="+cursor)
		listed = listed || len(page.Webhooks) == 1 && page.Webhooks[0].ID == first.ID
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if !listed {
		c.T.Errorf("got no webhook %s in the list", first.ID)
	}
	for address, status := range map[string]int{"": 400, "https://10.0.0.1/": 422, "https://169.254.169.254/latest/": 422, "http://hooks.example.org/": 422, "https://user:x@hooks.example.org/": 422} {
		c.wantProblem(status, "url", http.MethodPost, "/v1/webhooks", fmt.Sprintf(`{"url": %q}`, address))
		c.wantProblem(status, "url", http.MethodPatch, path, fmt.Sprintf(`{"url": %q}`, address))
	}
}

func secretIsRotated(c *Case) {
	s := c.subscribe(contract.WebhookSettings{BatchID: c.Batch("one"), EventTypes: []string{"job.completed"}})
	rotated, _ := send[contract.WebhookDetail](c, http.MethodPost, s.path+"/rotate", "", http.StatusOK)
	if rotated.Secret == "" || rotated.Secret == s.Secret || len(rotated.Secrets) != 2 || rotated.Secrets[0].ExpiresAt.Sub(rotated.Secrets[1].CreatedAt) != 24*time.Hour {
		c.T.Fatalf("got %+v, want another secret, and the older one for a day", rotated.Secrets)
	}
	s.secrets = append(s.secrets, rotated.Secret)
	c.End(c.StartShort("one"))
	s.until("job.completed", ofType(eventtype.Completed)) // with both signatures
}

func webhookIsPaused(c *Case) {
	s := c.subscribe(contract.WebhookSettings{BatchID: c.Batch("one"), EventTypes: []string{"job.completed"}})
	first := c.StartShort("one")
	c.End(first)
	s.until("the first run", ofType(eventtype.Completed))
	paused, _ := send[contract.WebhookDetail](c, http.MethodPatch, s.path, `{"paused": true}`, http.StatusOK)
	if paused.Status != contract.WebhookPaused {
		c.T.Errorf("got %+v, want it paused", paused)
	}
	after := newestCursor(c.Client)
	second := c.StartShort("one")
	c.End(second)
	missed := c.publishedUntilEnd(after, url.Values{"taskId": {second}}, second)
	send[contract.WebhookDetail](c, http.MethodPatch, s.path, `{"paused": false}`, http.StatusOK)
	third := c.StartShort("one")
	c.End(third)
	if got := s.until("the third run", ofType(eventtype.Completed)); len(got) != 1 || got[0].Job.ID != third {
		c.T.Fatalf("got %+v, want the end of the third run alone", got)
	}
	w := s.now()
	if len(w.Progress.Missed) != 1 {
		c.T.Fatalf("got the missed positions %+v, want one range", w.Progress.Missed)
	}
	positions := w.Progress.Missed[0]
	sent, _ := send[contract.Redelivery](c, http.MethodPost, s.path+"/redeliver", fmt.Sprintf(`{"from": %d, "to": %d}`, positions.From, positions.To), http.StatusAccepted)
	if sent.Events != 1 {
		c.T.Errorf("got %+v, want one event in the missed range", sent)
	}
	got := s.until("the second run", ofType(eventtype.Completed))
	if want := missed[len(missed)-1]; len(got) != 1 || got[0].EventID != want.EventID || got[0].IdempotencyKey != want.IdempotencyKey || got[0].Notifier.Replay == nil {
		c.T.Errorf("got %+v, want the end of the second run, %s, as a replay", got, want.EventID)
	}
}

func exportWithAWebhook(c *Case) {
	hold := scripts.Pipe(c.T)
	c.Target.Scripts.Set(c.T, c.Batch("one"), "wait:"+hold+" success")
	body := string(outside.Encode(c.T, contract.ExportRequest{
		PI: c.root(), BatchID: new(c.Batch("one")), Webhook: &contract.ExportWebhook{URL: c.inboxURL(), EventTypes: []string{"job.completed", "job.failed"}},
	}))
	accepted, _ := send[contract.ExportAccepted](c, http.MethodPost, "/export/mods", body, http.StatusAccepted, "Idempotency-Key", c.Batch("key"))
	c.tasks.add(accepted.TaskID)
	if accepted.Webhook == nil || accepted.Webhook.Secret == "" {
		c.T.Fatalf("got %+v, want a webhook with its secret", accepted)
	}
	again, _ := send[contract.ExportAccepted](c, http.MethodPost, "/export/mods", body, http.StatusOK, "Idempotency-Key", c.Batch("key"))
	if again.TaskID != accepted.TaskID || again.Webhook == nil || again.Webhook.ID != accepted.Webhook.ID || again.Webhook.Secret != "" {
		c.T.Errorf("got %+v of %+v, want the same webhook without its secret", again.Webhook, accepted.Webhook)
	}
	s := &subscription{c: c, path: "/v1/webhooks/" + accepted.Webhook.ID, topic: c.topic(inboxTopic), secrets: []string{accepted.Webhook.Secret}}
	c.subscribed = append(c.subscribed, s.path)
	if w := s.now(); !w.OfTask || w.TaskID != accepted.TaskID {
		c.T.Errorf("got %+v, want a webhook of the task", w)
	}
	scripts.Release(c.T, hold)
	c.End(accepted.TaskID)
	if got := s.until("the end", ofType(eventtype.Completed)); len(got) != 1 || got[0].Job.ID != accepted.TaskID {
		c.T.Errorf("got %+v, want the end of the task alone", got)
	}
	private := strings.Replace(body, c.inboxURL(), "https://10.0.0.1/", 1)
	c.wantProblem(http.StatusUnprocessableEntity, "webhook.url", http.MethodPost, "/export/mods", private)
}

func foreignWebhook(c *Case) {
	s, stranger := c.subscribe(contract.WebhookSettings{TaskID: "none"}), c.as(c.Target.Others.Stranger)
	for _, call := range [][3]string{
		{http.MethodGet, "", ""},
		{http.MethodGet, "/deliveries", ""},
		{http.MethodPatch, "", `{"paused": true}`},
		{http.MethodPost, "/test", ""},
		{http.MethodPost, "/rotate", ""},
		{http.MethodPost, "/redeliver", `{"position": 1}`},
		{http.MethodDelete, "", ""},
	} {
		answer := stranger.Call(call[0], s.path+call[1], call[2])
		if answer.Status != http.StatusNotFound || answer.Problem(c.T).Code != "NOT_FOUND" {
			c.T.Errorf("%s %s as another tenant: got %d %s, want 404", call[0], call[1], answer.Status, answer.Body)
		}
	}
	if list := stranger.Call(http.MethodGet, "/v1/webhooks?limit=1000", ""); strings.Contains(string(list.Body), s.ID) {
		c.T.Error("got the webhook in another tenant's list")
	}
	if w := s.now(); w.Version != 1 || len(s.take()) != 0 {
		c.T.Errorf("got %+v, want the webhook unchanged", w)
	}
}
