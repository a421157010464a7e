package jobs_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const (
	takesEvents = `{"image": "app", "command": ["{{event.id}}", "{{event.subject}}"], "sensor": {"cloudEvent": {"types": ["order.*"]}}}`
	structured  = "application/cloudevents+json"
	batched     = "application/cloudevents-batch+json"
)

func eventOf(id, kind string) string {
	return fmt.Sprintf(`{"specversion": "1.0", "id": %q, "source": "/shop", "type": %q, "subject": "s-%s", "data": {"a": 1}}`, id, kind, id)
}

func sendEvents(t *testing.T, stage *apitest.Stage, kind, body string, status int) []contract.EventReceipt {
	t.Helper()
	got, _ := apitest.Decoded[contract.EventReceipts](t, stage, "POST", path+"/events", body, status, "Content-Type", kind)
	return got.Events
}

func TestEventStartsOneRun(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, takesEvents, 201)
	first := sendEvents(t, stage, structured, eventOf("4711", "order.paid"), 202)
	if len(first) != 1 || first[0].Result != contract.EventCreated || !strings.HasPrefix(first[0].RunID, "nightly:") {
		t.Fatalf("got %+v, want a new run of the job", first)
	}
	again := sendEvents(t, stage, structured, eventOf("4711", "order.paid"), 200)
	if again[0].Result != contract.EventExisting || again[0].RunID != first[0].RunID {
		t.Errorf("got %+v for the same event, want its run %s", again, first[0].RunID)
	}
	shown, _ := apitest.Decoded[contract.Task](t, stage, "GET", "/v1/runs/"+first[0].RunID, "", 200)
	if shown.Trigger != "event" || shown.Event == nil || shown.Event.ID != "4711" || shown.Event.Source != "/shop" || shown.Event.Subject != "s-4711" {
		t.Errorf("got %s and %+v, want the event", shown.Trigger, shown.Event)
	}
	r := stage.Run(t, shown.TaskID)
	if got := r.Expanded().Command; got[0] != "4711" || got[1] != "s-4711" || r.ScheduledAt.IsZero() == false {
		t.Errorf("got command %q at %s, want the attributes and no scheduled time", got, r.ScheduledAt)
	}
	binary, _ := apitest.Decoded[contract.EventReceipts](t, stage, "POST", path+"/events", "hello", 202, "Content-Type", "text/plain",
		"ce-specversion", "1.0", "ce-id", "4712", "ce-source", "/shop", "ce-type", "order.paid")
	if binary.Events[0].ID != "4712" || binary.Events[0].Result != contract.EventCreated {
		t.Errorf("got %+v in the binary mode, want a run", binary)
	}
	// The run id, not the whole event, decides; another source is another item.
	other := sendEvents(t, stage, structured, strings.Replace(eventOf("4711", "order.paid"), "/shop", "/shop2", 1), 202)
	if other[0].RunID == first[0].RunID {
		t.Errorf("got run %s for another source, want another", other[0].RunID)
	}
}

func TestBatchOfEvents(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, takesEvents, 201)
	batch := "[" + eventOf("1", "order.paid") + "," + eventOf("2", "invoice") + "," + eventOf("1", "order.paid") + "," + eventOf("3", "order.sent") + "]"
	var results []string
	for _, r := range sendEvents(t, stage, batched, batch, 202) {
		results = append(results, r.ID+" "+r.Result)
	}
	if want := "[1 created 2 ignored 1 existing 3 created]"; fmt.Sprint(results) != want {
		t.Errorf("got %v, want %s", results, want)
	}
	if got := sendEvents(t, stage, batched, "[]", 200); len(got) != 0 {
		t.Errorf("got %+v for an empty batch, want nothing", got)
	}
	p, _ := apitest.Decoded[contract.Problem](t, stage, "POST", path+"/events", "["+eventOf("9", "order.paid")+`,{"specversion":"1.0","id":""}]`, 400, "Content-Type", batched)
	if p.Field != "1.id" {
		t.Errorf("got field %q, want 1.id", p.Field)
	}
	listed, _ := apitest.Decoded[contract.JobRuns](t, stage, "GET", path+"/runs", "", 200)
	if len(listed.Runs) != 2 {
		t.Errorf("got %d runs, want none of the refused batch", len(listed.Runs))
	}
}

func TestJobRefusesEvents(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	send := func(status int, body string, headers ...string) contract.Problem {
		t.Helper()
		p, _ := apitest.Decoded[contract.Problem](t, stage, "POST", path+"/events", body, status, append([]string{"Content-Type", structured}, headers...)...)
		return p
	}
	send(404, eventOf("1", "order.paid"))
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, `{"image": "app"}`, 201)
	if p := send(422, eventOf("1", "order.paid")); !strings.Contains(p.Detail, "sensor.cloudEvent") {
		t.Errorf("got %+v, want the missing sensor", p)
	}
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, takesEvents, 200)
	apitest.Decoded[api.JobAnswer](t, stage, "POST", path+"/pause", "", 200)
	if p := send(409, eventOf("1", "order.paid")); p.Code != "JOB_PAUSED" || !p.Retryable {
		t.Errorf("got %+v, want JOB_PAUSED", p)
	}
	apitest.Decoded[api.JobAnswer](t, stage, "POST", path+"/resume", "", 200)
	if p := send(400, `{"specversion":"1.0"}`); p.Field != "id" {
		t.Errorf("got field %q, want id", p.Field)
	}
	send(413, `{"specversion":"1.0","id":"1","source":"/s","type":"order.x","data":"`+strings.Repeat("x", 64<<10)+`"}`)
	send(413, strings.Repeat(" ", 1<<20)+"{}")
	apitest.Decoded[contract.Problem](t, stage, "POST", path+"/events", "{}", 415, "Content-Type", "application/json")
	if listed, _ := apitest.Decoded[contract.JobRuns](t, stage, "GET", path+"/runs", "", 200); len(listed.Runs) != 0 {
		t.Errorf("got %d runs, want none", len(listed.Runs))
	}
}

// TestConcurrentRequestsStartOneRun sends one event many times at once.
func TestConcurrentRequestsStartOneRun(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, takesEvents, 201)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() { stage.Call(t, "POST", path+"/events", eventOf("1", "order.paid"), "Content-Type", structured) })
	}
	wait.Wait()
	listed, _ := apitest.Decoded[contract.JobRuns](t, stage, "GET", path+"/runs", "", 200)
	if len(listed.Runs) != 1 || listed.Runs[0].Trigger != string(run.TriggerEvent) {
		t.Errorf("got %d runs, want one", len(listed.Runs))
	}
}

func TestRetryKeepsTheEvent(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, takesEvents, 201)
	first := sendEvents(t, stage, structured, eventOf("1", "order.paid"), 202)
	apitest.Decoded[contract.CancelAnswer](t, stage, "POST", "/v1/runs/"+first[0].RunID+"/cancel", "", 200)
	again, _ := apitest.Decoded[contract.RetryAccepted](t, stage, "POST", "/v1/runs/"+first[0].RunID+"/retry", "", 202)
	if r := stage.Run(t, again.TaskID); r.Event == nil || r.Event.ID != "1" || r.Expanded().Command[0] != "1" {
		t.Errorf("got event %+v, want that of the first run", r.Event)
	}
}
