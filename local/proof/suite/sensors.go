package suite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/items"
	"github.com/sortie-dev/sortie/local/proof/suite/clients"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// jobTakesEvents sends events to a job, one of them twice and one that its filter does not take.
func jobTakesEvents(c *Case) {
	path := c.job("takes-events", script(`printf '%s\n' "$0" "$SORTIE_EVENT"`).with("sensor", document{"cloudEvent": document{"types": []any{"order.*"}}}))
	event := func(id, kind string) string {
		return fmt.Sprintf(`{"specversion": "1.0", "id": %q, "source": "/shop", "type": %q, "subject": "a b", "data": {"total": 12}}`, id, kind)
	}
	const structured, batched = "application/cloudevents+json", "application/cloudevents-batch+json"
	first, _ := send[contract.EventReceipts](c, "POST", path+"/events", event("1", "order.paid"), 202, "Content-Type", structured)
	again, _ := send[contract.EventReceipts](c, "POST", path+"/events", "["+event("1", "order.paid")+","+event("2", "invoice")+"]", 200, "Content-Type", batched)
	if len(again.Events) != 2 || again.Events[0].RunID != first.Events[0].RunID || again.Events[0].Result != contract.EventExisting || again.Events[1].Result != contract.EventIgnored {
		c.T.Errorf("got %+v, want the run of %+v, and an ignored event", again, first)
	}
	binary, _ := send[contract.EventReceipts](c, "POST", path+"/events", "plain", 202, "Content-Type", "text/plain",
		"ce-specversion", "1.0", "ce-id", "3", "ce-source", "/shop", "ce-type", "order.sent", "ce-subject", "%E2%82%AC")
	for _, r := range c.runsThat(path, 2, hasEnded) {
		want := `"data":{"total":12}`
		if r.RunID == binary.Events[0].RunID {
			want = `"data":"plain"`
		}
		if log := c.log(r.TaskID); r.Trigger != "event" || r.State != "Completed" || r.Event == nil || !strings.Contains(log, want) {
			c.T.Errorf("got %s by %s with the event %+v and the log %q, want %s", r.State, r.Trigger, r.Event, log, want)
		}
	}
	send[map[string]any](c, "POST", path+"/pause", "", 200)
	if p, _ := send[contract.Problem](c, "POST", path+"/events", event("4", "order.paid"), 409, "Content-Type", structured); p.Code != "JOB_PAUSED" {
		c.T.Errorf("got %+v, want JOB_PAUSED", p)
	}
}

// jobPollsABucket puts objects into a bucket: one before the job, new ones, and one that is
// overwritten.
func jobPollsABucket(c *Case) {
	b := items.NewBucket(c.T, c.Target.Certificate)
	b.Put("out/old", "1")
	path := c.job("polls-a-bucket", script(`printf '%s\n' "$SORTIE_EVENT"`).with("sensor", document{"bucket": document{
		"name": items.BucketName, "prefix": "in/", "endpoint": b.URL, "region": items.Region, "secretRef": clients.SensorSecret, "every": "10s",
	}}))
	b.Put("in/a b", "1")
	b.Put("in/c", "1")
	c.runsThat(path, 2, hasEnded)
	b.Put("in/c", "22")
	var subjects []string
	for _, r := range c.runsThat(path, 3, hasEnded) {
		subjects = append(subjects, r.Event.Subject)
		if log := c.log(r.TaskID); r.Trigger != "event" || r.State != "Completed" || !strings.Contains(log, `"bucket":"items"`) || !strings.Contains(log, r.Event.Subject) {
			c.T.Errorf("got %s by %s with the log %q, want the object", r.State, r.Trigger, log)
		}
	}
	if slices.Sort(subjects); !slices.Equal(subjects, []string{"in/a b", "in/c", "in/c"}) {
		c.T.Errorf("got runs of %q, want one of each content of each object", subjects)
	}
}

// jobPollsAQueue sends messages to a queue, one of them too large for a run.
func jobPollsAQueue(c *Case) {
	q := items.NewQueue(c.T, c.Target.Certificate)
	large := q.Send(strings.Repeat("x", 256<<10))
	ids := []string{q.Send(`{"total": 12}`), q.Send("no JSON {")}
	path := c.job("polls-a-queue", script(`printf '%s\n' "$SORTIE_EVENT"`).with("sensor", document{"queue": document{
		"url": q.URL, "region": "eu-central-1", "secretRef": clients.SensorSecret, "every": "10s",
	}}))
	for _, r := range c.runsThat(path, 2, hasEnded) {
		want := map[string]string{ids[0]: `"data":{"total":12}`, ids[1]: `"data":"no JSON {"`}[r.Event.ID]
		if log := c.log(r.TaskID); r.Trigger != "event" || r.State != "Completed" || want == "" || !strings.Contains(log, want) {
			c.T.Errorf("got %s by %s of the message %s with the log %q, want %s", r.State, r.Trigger, r.Event.ID, log, want)
		}
	}
	c.eventually("deleted messages", func() bool { return slices.Equal(q.Left(), []string{large}) })
}
