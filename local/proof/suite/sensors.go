package suite

import (
	"fmt"
	"strings"

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
