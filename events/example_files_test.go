package events_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/oklog/ulid/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/events/examples"
)

var rewrite = flag.Bool("rewrite", false, "write the examples and the catalogue")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// sample returns a valid event of a type. n distinguishes events of one type.
func sample(t eventtype.Type, n int) events.Envelope {
	var id ulid.ULID
	_ = id.SetTime(uint64(noon.UnixMilli()))
	copy(id[6:], fmt.Sprintf("%-8.8s%02d", t, n))
	info, _ := eventtype.Of(t)
	e := events.Envelope{
		SchemaVersion: events.SchemaVersion, EventID: events.ID(id.String()), EventType: t, OccurredAt: noon,
		CorrelationID: "5d2f0a4c-3f0e-4a39-9d7a-0d0f6f4b8a11", TenantID: "acme", ProjectID: "archive",
		Actor: events.Actor{Subject: "service/sweep"},
	}
	const taskID = "job_01KJM74XY0H3ZZ5T605S8SXKKV"
	switch info.Subject {
	case eventtype.OfRun:
		e.IdempotencyKey = events.RunKey(t, taskID, 1, n)
		e.Job = &events.Job{
			ID: taskID, Type: events.JobPackRun, RunID: "nightly:20260301T120000Z", DefinitionID: "nightly", DefinitionVersion: 4, Attempt: 1, Seq: n,
			Status: events.StatusRunning, State: "Running", LeaseID: "lease_default-3", TaskRunnerID: "tr_148e",
		}
	case eventtype.OfSchedule:
		e.IdempotencyKey = events.ResourceKey(t, "nightly", int64(n))
		e.Schedule = &events.Schedule{DefinitionID: "nightly", ScheduledAt: noon, FiredAt: noon.Add(40 * time.Millisecond), RunID: "nightly:20260301T120000Z"}
	case eventtype.OfPolicy:
		e.IdempotencyKey = events.ResourceKey(t, "job/nightly", int64(n))
		e.Actor = events.Actor{Subject: "token/3f9a1c", Scopes: []string{"jobs:write"}}
		e.Policy = &events.Policy{Resource: "job", ID: "nightly", Version: int64(n), After: digest}
	case eventtype.OfStream:
		e.IdempotencyKey = events.ResourceKey(t, "stream", int64(n))
	}
	artifact := events.Artifact{
		URI: "https://sortie.example.org/download/" + taskID, Digest: digest, MIME: "text/csv", Size: 1204, FileName: "orders.csv",
	}
	switch t {
	case eventtype.Completed, eventtype.PackRunArtifact, eventtype.ExportCompleted:
		e.Job.Status, e.Job.State, e.Job.Artifacts = events.StatusCompleted, "Completed", []events.Artifact{artifact}
		e.Metrics = map[string]any{"durationSeconds": 12.345}
	case eventtype.Skipped:
		e.Job.Status, e.Job.State, e.Job.From, e.Job.Skipped = events.StatusCompleted, "Completed", "ActionRunning", true
		e.Job.Attempt, e.Job.LeaseID, e.Job.TaskRunnerID, e.Job.Message = 0, "", "", "skipped: maxConcurrentRuns: 1 of 1 slots are held"
		e.IdempotencyKey = events.RunKey(t, taskID, 0, n)
	case eventtype.Failed, eventtype.Orphaned:
		e.Job.Status, e.Job.State = events.StatusFailed, string("Failed")
		e.Job.Fault = &events.Fault{Code: "WORKER_ERROR", Category: "USER", Message: "exit code 3", Retryable: false}
	case eventtype.Cancelled:
		e.Job.Status, e.Job.State, e.Job.Reason = events.StatusCanceled, "Cancelled", events.ReasonUserCancelled
	case eventtype.RetryScheduled:
		e.Job.State, e.Job.Reason = "Retrying", events.ReasonRetryBackoff
		e.Metrics = map[string]any{"backoffSeconds": 30.0}
	case eventtype.Accepted:
		e.Actor = events.Actor{Subject: "token/3f9a1c", Scopes: []string{"tasks:write"}}
		e.Job.Attempt, e.Job.State, e.Job.PayloadDigest, e.Job.LeaseID, e.Job.TaskRunnerID = 0, "Pending", digest, "", ""
		e.IdempotencyKey = events.RunKey(t, taskID, 0, n)
	case eventtype.ActionExecuted:
		e.Job.TriggeredBy = &events.JobRun{JobID: "extract", RunID: "extract:20260301T115900Z"}
		e.Job.Triggered = &events.JobRun{JobID: "publish", RunID: "job_01KJM74XY0H3ZZ5T605S8SXKKW"}
		e.Job.Message = "onSuccess: trigger_job"
	case eventtype.PackRunLog:
		e.Log = &events.Log{Stream: "stdout", Sequence: int64(n), Data: []byte("12 orders\n")}
	case eventtype.WebhookTest:
		const hook = "whk_01KJM74XY0H3ZZ5T605S8SXKKV"
		e.IdempotencyKey = events.ResourceKey(t, "webhook/"+hook+"/"+id.String(), 1)
		e.ProjectID, e.Actor.Scopes = "", []string{"webhooks:write"}
		e.Policy = &events.Policy{Resource: "webhook", ID: hook, Version: 1, Reason: "test"}
		e.Notifier = &events.Notifier{Channel: "orch.policy", Delivery: events.DeliveryHMAC}
	case eventtype.ScheduleSkipped:
		e.Schedule.ScheduledAt = noon.AddDate(0, 0, -3)
		e.Schedule.RunID, e.Schedule.Skipped = "nightly:20260226T120000Z", 3
		e.Schedule.Reason = "3 firings until 2026-02-28T12:00:00Z were skipped: missed, since a later one was due too or it was too late"
	}
	return e
}

// defects are the changes that make examples invalid. The types use them in turn.
var defects = []struct {
	name  string
	spoil func(fields map[string]any)
}{
	{"without a tenant", func(f map[string]any) { delete(f, "tenantId") }},
	{"with another version", func(f map[string]any) { f["schemaVersion"] = "orch.event.v0" }},
	{"with an id that is no ULID", func(f map[string]any) { f["eventId"] = "urn:orch:event:1" }},
	{"with a time without a zone", func(f map[string]any) { f["occurredAt"] = "2026-03-01 12:00" }},
	{"without an actor", func(f map[string]any) { delete(f, "actor") }},
	{"with a key of another form", func(f map[string]any) { f["idempotencyKey"] = "event 1" }},
	{"with an unknown type", func(f map[string]any) { f["eventType"] = "job.exploded" }},
	{"without its subject", func(f map[string]any) {
		for _, part := range []string{"job", "schedule", "policy"} {
			delete(f, part)
		}
		f["actor"] = map[string]any{}
	}},
	{"with a delivery that does not exist", func(f map[string]any) { f["notifier"] = map[string]any{"channel": "orch.jobs", "delivery": "post"} }},
}

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(events.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("urn:orch:schema:orch.event.v1", document); err != nil {
		t.Fatal(err)
	}
	return compiler.MustCompile("urn:orch:schema:orch.event.v1")
}

func conforms(t *testing.T, s *jsonschema.Schema, document []byte) error {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(value)
}

// golden compares a file with its content, or writes it.
func golden(t *testing.T, path string, want []byte) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not up to date; run go test ./events -args -rewrite", path)
	}
}

func indented(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

// TestExamplesFollowTheSchema checks one valid and one invalid example of each type. The
// suite compares the valid ones with events of deployments.
func TestExamplesFollowTheSchema(t *testing.T) {
	t.Parallel()
	s := schema(t)
	for i, info := range eventtype.All() {
		valid, err := examples.Files.ReadFile(string(info.Type) + ".json")
		if err != nil {
			t.Error(err)
			continue
		}
		if err := conforms(t, s, valid); err != nil {
			t.Errorf("%s: got %v, want a valid example", info.Type, err)
		}
		e, err := events.Parse(valid)
		if err != nil || e.EventType != info.Type {
			t.Errorf("%s: got %+v, %v, want an event of the type", info.Type, e, err)
		}
		want := sample(info.Type, 7)
		got, err := events.Parse(indented(t, want))
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%s: got %v and a difference after reading (-want +got):\n%s", info.Type, err, diff)
		}
		var fields map[string]any
		if err := json.Unmarshal(valid, &fields); err != nil {
			t.Fatal(err)
		}
		defect := defects[i%len(defects)]
		defect.spoil(fields)
		invalid := indented(t, fields)
		golden(t, filepath.Join("examples", string(info.Type)+".invalid.json"), invalid)
		if conforms(t, s, invalid) == nil {
			t.Errorf("%s %s: got a valid document, want an invalid one", info.Type, defect.name)
		}
	}
}

// TestPartsOfATypeAreRequired removes the part that a type is about.
func TestPartsOfATypeAreRequired(t *testing.T) {
	t.Parallel()
	s := schema(t)
	for name, spoil := range map[string]func() events.Envelope{
		"run":      func() events.Envelope { e := sample(eventtype.Started, 1); e.Job = nil; return e },
		"schedule": func() events.Envelope { e := sample(eventtype.ScheduleFired, 1); e.Schedule = nil; return e },
		"policy":   func() events.Envelope { e := sample(eventtype.PolicyUpdated, 1); e.Policy = nil; return e },
		"log":      func() events.Envelope { e := sample(eventtype.PackRunLog, 1); e.Log = nil; return e },
		"artifact": func() events.Envelope { e := sample(eventtype.PackRunArtifact, 1); e.Job.Artifacts = nil; return e },
		"no run": func() events.Envelope {
			e := sample(eventtype.ScheduleFired, 1)
			e.Job = sample(eventtype.Started, 1).Job
			return e
		},
		"version": func() events.Envelope { e := sample(eventtype.Started, 1); e.Job.DefinitionVersion = -1; return e },
		"skipped": func() events.Envelope { e := sample(eventtype.Skipped, 1); e.Job.Skipped = false; return e },
		"status":  func() events.Envelope { e := sample(eventtype.Started, 1); e.Job.Status = "paused"; return e },
		"digest": func() events.Envelope {
			e := sample(eventtype.ExportCompleted, 1)
			e.Job.Artifacts[0].Digest = "md5:1"
			return e
		},
	} {
		if conforms(t, s, indented(t, spoil())) == nil {
			t.Errorf("%s: got a valid document, want an invalid one", name)
		}
	}
}

// TestSchemaOnlyGrows compares the schema with the published one of the version: fields
// and values that exist stay, and nothing more is required.
func TestSchemaOnlyGrows(t *testing.T) {
	t.Parallel()
	published, err := os.ReadFile("testdata/orch.event.v1.published.json")
	if err != nil {
		t.Fatal(err)
	}
	var before, now any
	if err := json.Unmarshal(published, &before); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(events.Schema(), &now); err != nil {
		t.Fatal(err)
	}
	for _, problem := range shrinks("", before, now) {
		t.Error(problem)
	}
	narrowed := map[string]any{"properties": map[string]any{"a": map[string]any{"enum": []any{"x"}}}, "required": []any{"a"}}
	wide := map[string]any{"properties": map[string]any{"a": map[string]any{"enum": []any{"x", "y"}}, "b": map[string]any{}}}
	if got := shrinks("", wide, narrowed); len(got) != 3 {
		t.Errorf("got %q for a schema that has shrunk, want 3 problems", got)
	}
}

// shrinks lists the restrictions that a schema adds to an earlier one.
func shrinks(at string, before, now any) (problems []string) {
	switch was := before.(type) {
	case map[string]any:
		is, ok := now.(map[string]any)
		if !ok {
			return []string{at + ": has another form"}
		}
		for name, value := range was {
			if name == "description" {
				continue
			}
			if _, kept := is[name]; !kept {
				problems = append(problems, at+"/"+name+": is missing")
				continue
			}
			problems = append(problems, shrinks(at+"/"+name, value, is[name])...)
		}
		if _, had := was["required"]; !had && is["required"] != nil && was["properties"] != nil {
			problems = append(problems, at+"/required: requires more")
		}
	case []any:
		is, _ := now.([]any)
		required := filepath.Base(at) == "required"
		for _, value := range was {
			if !required && filepath.Base(at) == "enum" && !contains(is, value) {
				problems = append(problems, fmt.Sprintf("%s: %v is missing", at, value))
			}
		}
		if required && len(is) > len(was) {
			problems = append(problems, at+": requires more")
		}
	default:
		if before != now {
			problems = append(problems, fmt.Sprintf("%s: got %v, want %v", at, now, before))
		}
	}
	return problems
}

func contains(values []any, value any) bool {
	for _, v := range values {
		if cmp.Equal(v, value) {
			return true
		}
	}
	return false
}
