package suite

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func eventLists() []Test {
	return []Test{
		{Name: "pages of events follow each other", Requires: []Capability{AnySource}, Run: eventsInPages},
		{Name: "events are selected by filters", Requires: []Capability{AnySource}, Run: eventsByFilter},
		{Name: "change of a resource is an event of its request", Requires: []Capability{Hooks}, Run: changesHaveTheirRequest},
		{Name: "cursor of events is refused", Run: eventCursors},
		{Name: "another tenant's events are unknown", Requires: []Capability{OtherTokens, AnySource}, Run: foreignEvents},
		{Name: "exported stream is proved complete", Requires: []Capability{OtherTokens, ScriptedWorkers}, Run: exportIsProved},
	}
}

// The content types of events.
const (
	eventLines       = "application/x-ndjson"
	signedEventLines = "application/vnd.dsse+x-ndjson"
)

// newestCursor returns the cursor of the end of the stream.
func newestCursor(c *outside.Client) string {
	c.T.Helper()
	return outside.Get[contract.EventPage](c, "/v1/events?after=latest&limit=1").Next
}

// eventsAfter returns the events after a cursor that match the filter. It reads pages of at
// most limit events.
func eventsAfter(c *outside.Client, after string, limit int, filter url.Values) (found []events.Envelope) {
	c.T.Helper()
	for {
		query := url.Values{"after": {after}, "limit": {strconv.Itoa(limit)}}
		maps.Copy(query, filter)
		page := outside.Get[contract.EventPage](c, "/v1/events?"+query.Encode())
		if len(page.Events) > limit {
			c.T.Fatalf("got a page of %d events, want at most %d", len(page.Events), limit)
		}
		for _, document := range page.Events {
			found = append(found, envelope(c, document))
		}
		if page.Next == after {
			return found
		}
		after = page.Next
	}
}

// envelope checks an event against the schema and decodes it.
func envelope(c *outside.Client, document []byte) events.Envelope {
	c.T.Helper()
	if err := outside.CheckSchema("Event", document); err != nil {
		c.T.Errorf("event %s: %v", document, err)
	}
	e, err := events.Parse(document)
	if err != nil {
		c.T.Fatal(err)
	}
	return e
}

// publishedUntilEnd waits until all tasks have completed. It returns the events after a cursor
// that match the filter.
func (c *Case) publishedUntilEnd(after string, filter url.Values, tasks ...string) (found []events.Envelope) {
	c.T.Helper()
	c.eventually("event of the end of each task", func() bool {
		found = eventsAfter(c.Client, after, 1000, filter)
		return !slices.ContainsFunc(tasks, func(task string) bool {
			return !slices.ContainsFunc(found, func(e events.Envelope) bool {
				return e.EventType == eventtype.Completed && e.Job != nil && e.Job.ID == task
			})
		})
	})
	return found
}

func eventIDs(found []events.Envelope) (ids []string) {
	for _, e := range found {
		ids = append(ids, e.EventID)
	}
	return ids
}

func eventsInPages(c *Case) {
	after := newestCursor(c.Client)
	task := c.StartShort("one")
	c.End(task)
	filter := url.Values{"taskId": {task}}
	found := c.publishedUntilEnd(after, filter, task)
	known := map[string]bool{}
	for i, e := range found {
		if e.Job.Seq != i+1 || e.Job.RunID != task || e.TenantID == "" || e.Notifier == nil || e.Notifier.Delivery != events.DeliveryPlain || known[e.EventID] {
			c.T.Errorf("event %d of the task: got %+v of %+v, want number %d, for delivery without a signature", i, e, e.Job, i+1)
		}
		known[e.EventID] = true
		for _, a := range e.Job.Artifacts {
			if address, err := url.Parse(a.URI); err != nil || !address.IsAbs() || address.Host == "" || address.Path != "/download/"+task {
				c.T.Errorf("%s: got the artifact %+v, want the absolute URL of its download", e.EventType, a)
			}
		}
	}
	if first := found[0]; first.EventType != eventtype.Accepted || first.Job.PayloadDigest == "" || first.Job.BatchID != c.Batch("one") {
		c.T.Errorf("got the first event %+v of %+v, want job.accepted with the digest of the request", first, first.Job)
	}
	want := eventIDs(found)
	for _, limit := range []int{1, 3} {
		if got := eventIDs(eventsAfter(c.Client, after, limit, filter)); !slices.Equal(got, want) {
			c.T.Errorf("pages of %d: got %v, want %v", limit, got, want)
		}
	}
	lines := c.Call(http.MethodGet, "/v1/events?limit=1000&after="+after+"&taskId="+task, "", "Accept", eventLines)
	var got []string
	for line := range strings.Lines(string(lines.Body)) {
		got = append(got, envelope(c.Client, []byte(line)).EventID)
	}
	if lines.Header.Get("Content-Type") != eventLines || len(got) == 0 || !slices.Equal(got, want[:len(got)]) {
		c.T.Errorf("got %v of type %s, want one event of %v on each line", got, lines.Header.Get("Content-Type"), want)
	}
	if answer := c.Call(http.MethodGet, "/v1/events", "", "Accept", "text/html"); answer.Status != http.StatusNotAcceptable {
		c.T.Errorf("text/html: got %d %s, want 406", answer.Status, answer.Body)
	}
}

// changesHaveTheirRequest changes resources of each kind. It finds the events of the changes by
// the correlation ids of the requests.
func changesHaveTheirRequest(c *Case) {
	after := newestCursor(c.Client)
	job, hook := c.jobPath("changed"), string(outside.Encode(c.T, contract.WebhookSettings{URL: c.inboxURL(), TaskID: "none"}))
	want := map[string]string{}
	change := func(resource, method, path, body string, status int) http.Header {
		id := fmt.Sprintf("%s %d", c.Batch("change"), len(want))
		want[id] = resource
		_, header := send[json.RawMessage](c, method, path, body, status, "X-Correlation-Id", id)
		return header
	}
	change("job", "PUT", job, `{"image": "a:1"}`, http.StatusCreated)
	change("job", "POST", job+"/pause", "", http.StatusOK)
	change("job", "DELETE", job, "", http.StatusNoContent)
	pool := c.poolPath("changed")
	change("pool", "PUT", pool, `{"limit": 1}`, http.StatusCreated)
	change("pool", "POST", pool+"/drain", "", http.StatusAccepted)
	change("pool", "DELETE", pool, "", http.StatusNoContent)
	change("quota", "PUT", "/v1/budgets/project:"+c.Batch("change"), `{"turns": 1000}`, http.StatusOK)
	model := change("model", "POST", "/v1/catalog/models", `{"id": "`+c.Batch("changed")+`", "engines": ["vllm"]}`, http.StatusCreated).Get("Location")
	change("model", "POST", model+"/state", `{"state": "Retired"}`, http.StatusOK)
	change("model", "DELETE", model, "", http.StatusNoContent)
	webhook := change("webhook", "POST", "/v1/webhooks", hook, http.StatusCreated).Get("Location")
	change("webhook", "PATCH", webhook, `{"description": "changed"}`, http.StatusOK)
	change("webhook", "POST", webhook+"/rotate", "", http.StatusOK)
	change("webhook", "DELETE", webhook, "", http.StatusNoContent)
	c.eventually("event of each change", func() bool {
		got := map[string]string{}
		for _, e := range eventsAfter(c.Client, after, 1000, url.Values{"types": {"policy.updated"}}) {
			if want[e.CorrelationID] != "" {
				got[e.CorrelationID] = e.Policy.Resource
			}
		}
		return maps.Equal(got, want)
	})
}

func eventsByFilter(c *Case) {
	after := newestCursor(c.Client)
	task := c.StartShort("one")
	c.End(task)
	all := c.publishedUntilEnd(after, url.Values{"batchId": {c.Batch("one")}}, task)
	of := func(types ...eventtype.Type) (want []string) {
		for _, e := range all {
			if slices.Contains(types, e.EventType) {
				want = append(want, e.EventID)
			}
		}
		return want
	}
	for _, row := range []struct {
		name   string
		filter url.Values
		want   []string
	}{
		{"task", url.Values{"taskId": {task}}, eventIDs(all)},
		{"two types", url.Values{"taskId": {task}, "types": {"job.accepted,job.completed"}}, of(eventtype.Accepted, eventtype.Completed)},
		{"wildcard", url.Values{"taskId": {task}, "types": {"job.comp*"}}, of(eventtype.Completed)},
		{"another kind", url.Values{"taskId": {task}, "types": {"schedule.*"}}, nil},
		{"project", url.Values{"taskId": {task}, "projectId": {all[0].ProjectID}}, eventIDs(all)},
		{"another project", url.Values{"taskId": {task}, "projectId": {"none"}}, nil},
		{"job", url.Values{"taskId": {task}, "jobId": {"none"}}, nil},
		{"label", url.Values{"taskId": {task}, "label": {"team=data"}}, nil},
		{"no label", url.Values{"taskId": {task}, "label": {"!team"}}, eventIDs(all)},
		{"no child", url.Values{"taskId": {task}, "parentRunId": {"none"}}, eventIDs(all)},
		{"child", url.Values{"taskId": {task}, "parentRunId": {task}}, nil},
		{"another batch", url.Values{"taskId": {task}, "batchId": {c.Batch("none")}}, nil},
	} {
		if got := eventIDs(eventsAfter(c.Client, after, 1000, row.filter)); !slices.Equal(got, row.want) || row.name == "wildcard" && len(got) != 1 {
			c.T.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
	for query, field := range map[string]string{"types=job.none": "types", "limit=0": "limit", "limit=1001": "limit", "taskId=": "taskId", "parentRunId=": "parentRunId", "label=": "label", "label=a+in+(": "label", "since=1": "since"} {
		c.wantProblem(http.StatusBadRequest, field, http.MethodGet, "/v1/events?"+query, "")
	}
}

func eventCursors(c *Case) {
	for _, cursor := range []string{"x", "-1", "E1-1", "e1-01", "a-b"} {
		c.wantProblem(http.StatusBadRequest, "after", http.MethodGet, "/v1/events?after="+cursor, "")
	}
	if answer := c.Call(http.MethodGet, "/v1/events?after=other-5", ""); answer.Status != http.StatusGone || answer.Problem(c.T).Code != "CURSOR_EXPIRED" {
		c.T.Errorf("cursor of another stream: got %d %s, want 410", answer.Status, answer.Body)
	}
	for _, place := range []string{"0", "earliest", "latest"} {
		if answer := c.Call(http.MethodGet, "/v1/events?limit=1&after="+place, ""); answer.Status != http.StatusOK || answer.Header.Get("X-Next-Cursor") == "" {
			c.T.Errorf("%s: got %d %s, want 200 with the next cursor", place, answer.Status, answer.Body)
		}
	}
}

func foreignEvents(c *Case) {
	after := newestCursor(c.Client)
	task := c.StartShort("own")
	c.End(task)
	c.publishedUntilEnd(after, url.Values{"taskId": {task}}, task)
	stranger := c.as(c.Target.Others.Stranger)
	if found := eventsAfter(stranger, "earliest", 1000, url.Values{"taskId": {task}}); len(found) > 0 {
		c.T.Errorf("got %d events of the task in another tenant's stream, want none", len(found))
	}
	reader := c.as(c.Target.Others.Reader)
	for _, call := range [][2]string{{http.MethodGet, "/v1/events"}, {http.MethodPost, "/v1/events/tickets"}, {http.MethodGet, "/v1/webhooks"}} {
		answer := reader.Call(call[0], call[1], "")
		if p := answer.Problem(c.T); answer.Status != http.StatusForbidden || p.Code != "MISSING_SCOPE" || !strings.Contains(p.Detail, "events:read") {
			c.T.Errorf("%s %s with runs:read: got %d %s, want 403 for events:read", call[0], call[1], answer.Status, answer.Body)
		}
	}
}

// exportIsProved exports the stream of the other tenant, because that is short.
func exportIsProved(c *Case) {
	stranger := c.as(c.Target.Others.Stranger)
	c.Target.Scripts.Set(c.T, c.Batch("one"), "success")
	task := stranger.Export("mods", contract.ExportRequest{PI: c.root(), BatchID: new(c.Batch("one"))})
	stranger.End(task)
	keys, err := events.ParseKeys(stranger.Call(http.MethodGet, "/.well-known/jwks.json", "", "Authorization", "").Body)
	if err != nil {
		c.T.Fatal(err)
	}
	var file []string
	last := -1 // index of the task's last event
	c.eventually("checkpoint behind the end of the task", func() bool {
		file = untilCheckpoint(signedEvents(stranger))
		last = slices.IndexFunc(file, func(line string) bool {
			e, _, err := keys.Open(c.T.Context(), []byte(line))
			return err == nil && e.EventType == eventtype.Completed && e.Job.ID == task
		})
		return last > 0
	})
	verify := func(lines []string) (events.Proof, error) {
		return events.Verify(c.T.Context(), strings.NewReader(strings.Join(lines, "")), keys)
	}
	if proof, err := verify(file); err != nil || proof.To-proof.From < 2 || proof.Events != proof.To-proof.From+proof.Outside {
		c.T.Fatalf("got %+v, %v, want a proof of the events up to the last checkpoint", proof, err)
	}
	pair := last // this line and the one before are events
	for pair > 0 && (isCheckpoint(file[pair]) || isCheckpoint(file[pair-1])) {
		pair--
	}
	for name, change := range map[string]func([]string) []string{
		"removed":   func(lines []string) []string { return slices.Delete(lines, last, last+1) },
		"repeated":  func(lines []string) []string { return slices.Insert(lines, last, lines[last]) },
		"reordered": func(lines []string) []string { lines[pair-1], lines[pair] = lines[pair], lines[pair-1]; return lines },
		"changed":   func(lines []string) []string { lines[last] = c.changedEvent(lines[last]); return lines },
	} {
		if proof, err := verify(change(slices.Clone(file))); err == nil {
			c.T.Errorf("%s event: got the proof %+v, want an error", name, proof)
		}
	}
}

// signedEvents returns the lines of the whole stream.
func signedEvents(c *outside.Client) (lines []string) {
	c.T.Helper()
	for after := "earliest"; ; {
		answer := c.Call(http.MethodGet, "/v1/events?limit=1000&after="+after, "", "Accept", signedEventLines)
		next := answer.Header.Get("X-Next-Cursor")
		if answer.Status != http.StatusOK || answer.Header.Get("Content-Type") != signedEventLines || next == "" {
			c.T.Fatalf("got %d %v %.500s, want signed events", answer.Status, answer.Header, answer.Body)
		}
		if next == after {
			return lines
		}
		lines, after = append(lines, slices.Collect(strings.Lines(string(answer.Body)))...), next
	}
}

func isCheckpoint(line string) bool { return strings.HasPrefix(line, `{"checkpoint":`) }

// untilCheckpoint returns the lines up to the last checkpoint.
func untilCheckpoint(lines []string) []string {
	for len(lines) > 0 && !isCheckpoint(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// changedEvent returns a signed event with a changed payload.
func (c *Case) changedEvent(line string) string {
	c.T.Helper()
	signed := outside.Decode[struct {
		PayloadType string          `json:"payloadType"`
		Payload     []byte          `json:"payload"`
		Signatures  json.RawMessage `json:"signatures"`
	}](c.T, []byte(line))
	text := strings.Replace(string(signed.Payload), string(eventtype.Completed), string(eventtype.Failed), 1)
	if text == string(signed.Payload) {
		c.T.Fatalf("got the event %s, want %s", signed.Payload, eventtype.Completed)
	}
	signed.Payload = []byte(text)
	return string(outside.Encode(c.T, signed)) + "\n"
}
