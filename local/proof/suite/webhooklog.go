package suite

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func webhookLog() []Test {
	return []Test{
		{Name: "failed delivery is attempted again", Requires: []Capability{Hooks, AnySource}, Run: deliveryIsRepeated},
		{Name: "receiver that is gone disables its webhook", Requires: []Capability{Hooks, AnySource}, Run: receiverIsGone},
		{Name: "delivered event can be redelivered", Requires: []Capability{Hooks, AnySource}, Run: eventIsRedelivered},
		{Name: "ordered webhook gets the events of a task in their order", Requires: []Capability{Hooks, AnySource}, Run: webhookIsOrdered},
		{Name: "replay sends events to a webhook again", Requires: []Capability{Hooks, AnySource}, Run: replayToAWebhook},
		{Name: "replay is refused", Requires: []Capability{OtherTokens}, Run: replayIsRefused},
	}
}

// deliveryIsRepeated fails one attempt. The next one comes after 5 s with the same id.
func deliveryIsRepeated(c *Case) {
	s := c.subscribe(contract.WebhookSettings{BatchID: c.Batch("one"), EventTypes: []string{"job.completed"}})
	s.answer(http.StatusInternalServerError)
	c.End(c.StartShort("one"))
	first := s.until("the first attempt", ofType(eventtype.Completed))
	second := s.until("the second attempt", ofType(eventtype.Completed))
	if len(first) != 1 || len(second) != 1 || first[0].EventID != second[0].EventID || first[0].IdempotencyKey != second[0].IdempotencyKey {
		c.T.Errorf("got %+v and %+v, want one event twice", first, second)
	}
	d := s.settled(1)
	if len(d) != 1 || d[0].State != "delivered" || d[0].Tries != 2 || len(d[0].Attempts) != 2 || d[0].Attempts[0].Status != http.StatusInternalServerError || d[0].Attempts[1].Status != http.StatusNoContent {
		c.T.Errorf("got the log %+v, want the attempts 500 and 204", d)
	}
	if found := s.log("&state=failed"); len(found) != 0 {
		c.T.Errorf("got the failed deliveries %+v, want none", found)
	}
}

func receiverIsGone(c *Case) {
	s := c.subscribe(contract.WebhookSettings{BatchID: c.Batch("one"), EventTypes: []string{"job.completed"}})
	after := newestCursor(c.Client)
	s.answer(http.StatusGone)
	c.End(c.StartShort("one"))
	s.until("the attempt", ofType(eventtype.Completed))
	c.eventually("disabled webhook", func() bool { return s.now().Status == contract.WebhookDisabled })
	if w := s.now(); w.DisabledAt.IsZero() || w.DisabledReason != "receiver_gone" {
		c.T.Errorf("got %+v, want it disabled because the receiver is gone", w)
	}
	c.eventually("event about the webhook", func() bool {
		return slices.ContainsFunc(eventsAfter(c.Client, after, 1000, url.Values{"types": {"policy.updated"}}), func(e events.Envelope) bool {
			return e.Policy.ID == s.ID && e.Policy.Reason == "receiver_gone"
		})
	})
	if w, _ := send[contract.WebhookDetail](c, http.MethodPatch, s.path, `{"paused": false}`, http.StatusOK); w.Status != contract.WebhookActive || !w.DisabledAt.IsZero() {
		c.T.Errorf("got %+v, want it enabled", w)
	}
}

func eventIsRedelivered(c *Case) {
	s := c.subscribe(contract.WebhookSettings{BatchID: c.Batch("one"), EventTypes: []string{"job.accepted", "job.completed"}})
	c.End(c.StartShort("one"))
	first := s.until("the end", ofType(eventtype.Completed))
	log := s.settled(2)
	first = append(first, s.take()...)
	if len(log) != 2 || len(first) != 2 {
		c.T.Fatalf("got %+v in the log and the events %+v, want two", log, first)
	}
	redeliver := func(body string, n int) {
		sent, _ := send[contract.Redelivery](c, http.MethodPost, s.path+"/redeliver", body, http.StatusAccepted)
		if sent.Events != n {
			c.T.Errorf("%s: got %+v, want %d events", body, sent, n)
		}
	}
	redeliver(fmt.Sprintf(`{"position": %d}`, log[0].Position), 1)
	got := s.until("the first event", ofType(eventtype.Accepted))
	if len(got) != 1 || got[0].EventID != log[0].EventID || got[0].Notifier.Replay == nil {
		c.T.Errorf("got %+v, want the first event as a replay", got)
	}
	// The redelivery has ended when the webhook no longer shows it.
	idle := func() bool { return len(s.now().Progress.Redeliveries) == 0 }
	c.eventually("end of the redelivery", idle)
	redeliver(fmt.Sprintf(`{"from": %d, "to": %d}`, log[0].Position, log[1].Position), 2)
	got = s.until("the last event", ofType(eventtype.Completed))
	c.eventually("end of the redelivery", idle)
	s.settled(2)
	if got = append(got, s.take()...); !sameEvents(eventIDs(got), eventIDs(first)) {
		c.T.Errorf("got %v again, want %v", eventIDs(got), eventIDs(first))
	}
	for body, field := range map[string]string{`{}`: "from", `{"from": 1}`: "to", `{"position": 0}`: "position", `{"from": 3, "to": 2}`: "to"} {
		c.wantProblem(http.StatusBadRequest, field, http.MethodPost, s.path+"/redeliver", body)
	}
}

func webhookIsOrdered(c *Case) {
	s := c.subscribe(contract.WebhookSettings{BatchID: c.Batch("one"), EventTypes: []string{"job.*"}, Ordered: true})
	c.End(c.StartShort("one"))
	for i, e := range s.until("the end", ofType(eventtype.Completed)) {
		if e.Job.Seq != i+1 {
			c.T.Errorf("delivery %d: got event %d of the task, want %d", i+1, e.Job.Seq, i+1)
		}
	}
}

func replayToAWebhook(c *Case) {
	after := newestCursor(c.Client)
	task := c.StartShort("one")
	c.End(task)
	c.publishedUntilEnd(after, url.Values{"taskId": {task}}, task)
	want := eventsAfter(c.Client, after, 1000, url.Values{"taskId": {task}, "types": {"job.accepted,job.completed"}})
	s := c.subscribe(contract.WebhookSettings{BatchID: c.Batch("one"), Ordered: true})
	body := string(outside.Encode(c.T, contract.ReplayRequest{
		From: after, Filter: contract.EventFilter{TaskID: task, Types: []string{"job.accepted", "job.completed"}}, Target: contract.ReplayTarget{WebhookID: s.ID},
	}))
	key := []string{"Idempotency-Key", c.Batch("key")}
	accepted, _ := send[contract.Replay](c, http.MethodPost, "/v1/events:replay", body, http.StatusAccepted, key...)
	if accepted.Events != len(want) || len(want) != 2 || accepted.Target.WebhookID != s.ID {
		c.T.Fatalf("got %+v, want %d events to the webhook", accepted, len(want))
	}
	got := s.until("the last event", ofType(eventtype.Completed))
	for i, e := range got {
		if n := e.Notifier.Replay; n == nil || n.Ordinal != i+1 || n.Total != len(want) || e.EventID != want[i].EventID || e.IdempotencyKey != want[i].IdempotencyKey {
			c.T.Errorf("event %d: got %+v with %+v, want %s under its own ids", i, e, n, want[i].EventID)
		}
	}
	if len(got) != len(want) {
		c.T.Errorf("got %d events, want %d", len(got), len(want))
	}
	if again, _ := send[contract.Replay](c, http.MethodPost, "/v1/events:replay", body, http.StatusOK, key...); again.ID != accepted.ID || again.Sent != len(want) {
		c.T.Errorf("got %+v, want the replay %s with all events sent", again, accepted.ID)
	}
}

func replayIsRefused(c *Case) {
	for body, field := range map[string]string{
		`{"target": {"bus": true}}`: "from", `{"from": "yesterday", "target": {"bus": true}}`: "from", `{"from": "earliest", "target": {}}`: "target",
		`{"from": "earliest", "target": {"bus": true}, "limit": 10001}`: "limit", `{"from": "earliest", "target": {"bus": true}, "filter": {"types": ["job.none"]}}`: "filter.types",
	} {
		c.wantProblem(http.StatusBadRequest, field, http.MethodPost, "/v1/events:replay", body)
	}
	unknown := `{"from": "earliest", "target": {"webhookId": "whk_01KJM74XY0H3ZZ5T605S8SXKKV"}}`
	send[contract.Problem](c, http.MethodPost, "/v1/events:replay", unknown, http.StatusNotFound)
	answer := c.as(c.Target.Others.Reader).Call(http.MethodPost, "/v1/events:replay", unknown)
	if p := answer.Problem(c.T); answer.Status != http.StatusForbidden || p.Code != "MISSING_SCOPE" {
		c.T.Errorf("with runs:read: got %d %s, want 403 MISSING_SCOPE", answer.Status, answer.Body)
	}
}
