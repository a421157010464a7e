package events_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
)

// TestUnknownFieldsAreKept reads an event of a later version and writes it again.
func TestUnknownFieldsAreKept(t *testing.T) {
	t.Parallel()
	text := string(indented(t, sample(eventtype.Completed, 1)))
	text = strings.Replace(text, `"tenantId"`, `"later": {"a": [1]}, "tenantId"`, 1)
	text = strings.Replace(text, `"definitionId"`, `"color": "red", "definitionId"`, 1)
	text = strings.Replace(text, `"mime"`, `"codec": null, "mime"`, 1)
	e, err := events.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	want, err := events.Canonical([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := events.Canonical(again)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestMalformedEventIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[]":                                  "malformed event",
		"{":                                   "malformed event",
		`{"schemaVersion":"orch.event.v2"}`:   `unknown schemaVersion "orch.event.v2"`,
		`{"schemaVersion":"orch.event.v1",x}`: "malformed event",
	} {
		if _, err := events.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	if _, err := events.ULID("urn:other:1"); err == nil {
		t.Error("got the ULID of another URN, want an error")
	}
}

func TestKeysOfEvents(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"orch-job.completed-job_1-2":          events.RunKey(eventtype.Completed, "job_1", 2, 9),
		"orch-job.queued-job_1-2-9":           events.RunKey(eventtype.Queued, "job_1", 2, 9),
		"orch-policy.updated-pool/default-3":  events.ResourceKey(eventtype.PolicyUpdated, "pool/default", 3),
		"urn:orch:event:01KJM74XY0H3ZZ5T605S": events.ID("01KJM74XY0H3ZZ5T605S"),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestLongEventIsCut cuts the texts of events that are too long, and names them.
func TestLongEventIsCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", events.MaxSize)
	e := sample(eventtype.Failed, 1)
	e.Job.Message, e.Job.Fault.Message = long, long
	cut, err := e.Fit()
	if err != nil {
		t.Fatal(err)
	}
	document, err := json.Marshal(cut)
	if err != nil || len(document) > events.MaxSize {
		t.Errorf("got %d bytes, %v, want at most %d", len(document), err, events.MaxSize)
	}
	if got, want := strings.Join(cut.Truncated, ","), "job.message,job.fault.message"; got != want {
		t.Errorf("got %s cut, want %s", got, want)
	}
	if e.Job.Message != long || !strings.HasSuffix(cut.Job.Message, "(cut)") {
		t.Error("got a changed event or no mark, want a copy with a mark")
	}
	if err := conforms(t, schema(t), document); err != nil {
		t.Errorf("got %v, want a valid event", err)
	}
	short := sample(eventtype.Completed, 1)
	if same, err := short.Fit(); err != nil || len(same.Truncated) != 0 {
		t.Errorf("got %v cut, %v, want a short event unchanged", same.Truncated, err)
	}
	e = sample(eventtype.Completed, 1)
	for range 2000 {
		e.Job.Artifacts = append(e.Job.Artifacts, e.Job.Artifacts[0])
	}
	if cut, err = e.Fit(); err != nil || strings.Join(cut.Truncated, ",") != "job.artifacts" {
		t.Errorf("got %v cut, %v, want the artifacts", cut.Truncated, err)
	}
	e.TenantID = long
	if _, err = e.Fit(); err == nil {
		t.Error("got an event that cannot be cut, want an error")
	}
}

// TestFitLimitsEveryText fits events with a long text, of which each byte is escaped. An event
// that is not encoded for its size has at most MaxSize bytes, too.
func TestFitLimitsEveryText(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(e *events.Envelope, text string){
		"message":     func(e *events.Envelope, text string) { e.Job.Message = text },
		"tenant":      func(e *events.Envelope, text string) { e.TenantID = text },
		"project":     func(e *events.Envelope, text string) { e.ProjectID = text },
		"id":          func(e *events.Envelope, text string) { e.EventID = text },
		"key":         func(e *events.Envelope, text string) { e.IdempotencyKey = text },
		"correlation": func(e *events.Envelope, text string) { e.CorrelationID = text },
		"subject":     func(e *events.Envelope, text string) { e.Actor.Subject = text },
		"scope":       func(e *events.Envelope, text string) { e.Actor.Scopes = []string{text} },
		"scopes":      func(e *events.Envelope, text string) { e.Actor.Scopes = strings.Split(text, "") },
		"task":        func(e *events.Envelope, text string) { e.Job.ID = text },
		"run":         func(e *events.Envelope, text string) { e.Job.RunID = text },
		"state":       func(e *events.Envelope, text string) { e.Job.State = text },
		"from":        func(e *events.Envelope, text string) { e.Job.From = text },
		"lease":       func(e *events.Envelope, text string) { e.Job.LeaseID = text },
		"task runner": func(e *events.Envelope, text string) { e.Job.TaskRunnerID = text },
		"batch":       func(e *events.Envelope, text string) { e.Job.BatchID = text },
		"definition":  func(e *events.Envelope, text string) { e.Job.DefinitionID = text },
		"digest":      func(e *events.Envelope, text string) { e.Job.PayloadDigest = text },
		"artifact":    func(e *events.Envelope, text string) { e.Job.Artifacts = []events.Artifact{{URI: text}} },
		"fault":       func(e *events.Envelope, text string) { e.Job.Fault = &events.Fault{Message: text} },
		"metric":      func(e *events.Envelope, text string) { e.Metrics = map[string]any{text: 1} },
		"text metric": func(e *events.Envelope, text string) { e.Metrics = map[string]any{"m": text} },
		"nested":      func(e *events.Envelope, text string) { e.Metrics = map[string]any{"m": map[string]any{text: text}} },
		"reason":      func(e *events.Envelope, text string) { e.Schedule = &events.Schedule{Reason: text} },
		"resource":    func(e *events.Envelope, text string) { e.Policy = &events.Policy{ID: text} },
		"unknown field": func(e *events.Envelope, text string) {
			e.Unknown = events.Unknown{"x": json.RawMessage(`"` + strings.Repeat("x", len(text)) + `"`)}
		},
		"unknown of job": func(e *events.Envelope, text string) {
			e.Job.Unknown = events.Unknown{"x": json.RawMessage(`"` + strings.Repeat("x", len(text)) + `"`)}
		},
	} {
		for _, n := range []int{9_000, 11_000, 12_000, 66_000} {
			e := sample(eventtype.Admitted, 1)
			e.Notifier = nil
			set(&e, strings.Repeat("\x01", n))
			fits, err := e.Fit()
			if err != nil {
				continue // it cannot be cut
			}
			if document, err := json.Marshal(fits); err != nil || len(document) > events.MaxSize {
				t.Errorf("%s of %d bytes: got an event of %d bytes, %v, want at most %d", name, n, len(document), err, events.MaxSize)
			}
		}
	}
}
