package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files")

var nine = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(events.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("urn:schema", document); err != nil {
		t.Fatal(err)
	}
	return compiler.MustCompile("urn:schema")
}

// fails has the methods that *testing.T and *rapid.T share.
type fails interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// published returns the published events of a change, after validating them against the schema.
func published(t fails, s *jsonschema.Schema, c port.Change) []events.Envelope {
	t.Helper()
	all, err := api.Events("https://sortie.example.org/", c)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		document, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(value); err != nil {
			t.Fatalf("%s\n%v", document, err)
		}
		if len(document) > events.MaxSize {
			t.Fatalf("got an event of %d bytes, want at most %d", len(document), events.MaxSize)
		}
	}
	return all
}

// life is a run with facts that happen to it, one per minute.
type life struct {
	facts []run.Fact
	start run.Run
	// skipped creates the run as the record of skipped firings.
	skipped bool
}

func (l life) events(t *testing.T, s *jsonschema.Schema) (all []events.Envelope) {
	t.Helper()
	d := run.New(l.start, nine)
	if l.skipped {
		d = run.NewSkipped(l.start, nine)
	}
	all = published(t, s, port.Change{Run: d.Run, Events: d.Events})
	for i, f := range l.facts {
		var err error
		if d, err = run.Decide(d.Run, f, nine.Add(time.Duration(i+1)*time.Minute)); err != nil {
			t.Fatalf("%T: %v", f, err)
		}
		all = append(all, published(t, s, port.Change{Run: d.Run, Events: d.Events})...)
	}
	return all
}

func sampleRun(kind string) run.Run {
	return run.Run{
		Tenant: "acme", Workspace: "archive", ID: kind + "_1", TaskID: kind + "_1", CorrelationID: "corr-1", BatchID: "b1",
		CreatedBy:     run.Actor{Subject: "token:3f9a1c", Scopes: []string{"runs:write", "orch:quota"}},
		PayloadDigest: "sha256:" + strings.Repeat("ab", 32), Slot: platform.Slot{Pool: "default", Limit: 2},
		Work: spec.Work{Kind: kind, Format: "mods", Image: "app"},
		Policy: spec.Policy{
			StartTimeout: 10 * time.Minute, TimeLimit: 24 * time.Hour, HeartbeatInterval: time.Minute, HeartbeatTimeout: time.Hour,
			CancelGrace: time.Minute, QueueTimeout: 24 * time.Hour, OutputRetention: 24 * time.Hour, RecordRetention: 7 * 24 * time.Hour,
			Retry: spec.Retry{MaxAttempts: 2, InitialDelay: 30 * time.Second, Multiplier: 2, MaxDelay: time.Minute},
		},
	}
}

func lives() map[string]life {
	machine := run.MachineCreated{Attempt: 1, Machine: platform.Machine{Runner: "fly", Pool: "default", App: "workers", ID: "148e"}}
	started := run.WorkerContacted{Attempt: 1, WorkerID: "w1", Started: true}
	upload := run.Upload{Key: "exports/export_1/a1", FileName: "orders.xml", Size: 1204}
	success := run.Reported{Attempt: 1, WorkerID: "w1", Report: run.Report{Digest: "d", Success: true, Outcome: run.OutcomeSucceeded, Upload: &upload}}
	upload.Digest = "sha256:" + strings.Repeat("cd", 32)
	settled := run.Settled{Output: &run.Output{Upload: upload, ExpiresAt: nine.Add(24 * time.Hour)}}
	firing := sampleRun(spec.KindJob)
	firing.ID, firing.JobID, firing.JobVersion, firing.Trigger = "nightly:20261121T090000Z", "nightly", 3, run.TriggerSchedule
	firing.CreatedBy, firing.PayloadDigest, firing.ScheduledAt, firing.FiredAt = run.Actor{}, "", nine, nine.Add(40*time.Millisecond)
	firing.Work.Program = &spec.Program{}
	missed := firing
	missed.Missed = &run.Missed{Reason: run.SkipMissed, Count: 3, Until: nine}
	manual := sampleRun(spec.KindJob)
	manual.Work.Program = &spec.Program{}
	failed := run.Reported{Attempt: 1, WorkerID: "w1", Report: run.Report{
		Digest: "d", Outcome: run.OutcomeFailed, Category: fault.Infrastructure, Error: "connection reset",
	}}
	silent, heard := manual, run.Reception{Received: true, Since: nine, Gap: time.Second}
	silent.Policy.HeartbeatInterval, silent.Policy.HeartbeatTimeout = 10*time.Second, 30*time.Second
	return map[string]life{
		"an_export_succeeds":     {[]run.Fact{run.Admitted{Pool: "default", Limit: 2}, machine, started, success, settled}, sampleRun(spec.KindExport), false},
		"a_program_has_output":   {[]run.Fact{run.Admitted{Pool: "default", Limit: 2}, machine, started, success, settled}, firing, false},
		"firings_are_skipped":    {nil, missed, true},
		"a_run_is_retried":       {[]run.Fact{run.Admitted{}, machine, started, failed, run.Settled{}, run.Due{}}, manual, false},
		"a_run_is_cancelled":     {[]run.Fact{run.Enqueued{Pool: "default", Limit: 2}, run.CancelRequested{By: "token:b2c3d4", Scopes: []string{"admin"}, Reason: "no need"}}, manual, false},
		"a_worker_is_silent":     {[]run.Fact{run.Admitted{}, machine, started, run.Evaluated{Contact: run.Contact{LastAt: nine.Add(3 * time.Minute), Reception: heard}}, run.Settled{}}, silent, false},
		"an_execution_is_lost":   {[]run.Fact{run.Admitted{}, machine, started, run.Restarted{Start: 1, Cause: "FAILED"}, run.Restarted{Start: 2, Cause: "FAILED"}}, manual, false},
		"a_start_has_no_machine": {[]run.Fact{run.Admitted{}, run.StartRefused{Attempt: 1, Fault: fault.New(fault.InvalidRequest, "no such image")}, run.Settled{}}, manual, false},
	}
}

// TestEventsOfLives compares the events of some runs with golden files.
func TestEventsOfLives(t *testing.T) {
	t.Parallel()
	s := schema(t)
	for name, l := range lives() {
		var got bytes.Buffer
		for _, e := range l.events(t, s) {
			document, err := json.MarshalIndent(e, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got.Write(append(document, '\n'))
		}
		path := filepath.Join("testdata", "events", name+".json")
		if *rewrite {
			if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got.Bytes()) {
			t.Errorf("%s has changed; -rewrite writes\n%s", path, got.String())
		}
	}
}

// TestEventsHaveOneIDAndOneKey: an id and a key identify one event, including derived ones,
// each time the event is made.
func TestEventsHaveOneIDAndOneKey(t *testing.T) {
	t.Parallel()
	s := schema(t)
	for name, l := range lives() {
		first, second := l.events(t, s), l.events(t, s)
		seen := map[string]string{}
		for i, e := range first {
			if e.EventID != second[i].EventID || e.IdempotencyKey != second[i].IdempotencyKey {
				t.Errorf("%s: got %s and %s for one event", name, e.EventID, second[i].EventID)
			}
			for _, each := range []string{e.EventID, e.IdempotencyKey} {
				if other := seen[each]; other != "" {
					t.Errorf("%s: got %s for %s and %s", name, each, other, e.EventType)
				}
				seen[each] = string(e.EventType)
			}
		}
	}
}

// TestEventsConformToTheSchema draws runs and events with random content.
func TestEventsConformToTheSchema(t *testing.T) {
	t.Parallel()
	s := schema(t)
	text := rapid.OneOf(rapid.String(), rapid.Just(strings.Repeat("<é\x00\xff", 20_000)), rapid.Just(""))
	name := rapid.StringMatching(`[a-z0-9_:\-]{1,60}`)
	at := rapid.Custom(func(t *rapid.T) time.Time {
		return nine.Add(time.Duration(rapid.Int64Range(-1e15, 1e15).Draw(t, "at")))
	})
	rapid.Check(t, func(t *rapid.T) {
		r := run.Run{
			Tenant: name.Draw(t, "tenant"), Workspace: rapid.SampledFrom([]string{"", "web"}).Draw(t, "workspace"),
			ID: name.Draw(t, "id"), TaskID: name.Draw(t, "task"), CorrelationID: rapid.SampledFrom([]string{"", "c"}).Draw(t, "correlation"),
			BatchID: rapid.SampledFrom([]string{"", "single"}).Draw(t, "batch"), JobID: rapid.SampledFrom([]string{"", "nightly"}).Draw(t, "job"),
			Work:    spec.Work{Kind: rapid.SampledFrom([]string{spec.KindExport, spec.KindJob}).Draw(t, "kind"), Program: &spec.Program{}},
			State:   rapid.SampledFrom(run.States()).Draw(t, "state"),
			RetryAt: at.Draw(t, "retry"), CreatedAt: at.Draw(t, "created"), EndedAt: at.Draw(t, "ended"),
			Attempt: run.Attempt{
				Number: rapid.IntRange(0, 2).Draw(t, "attempt"), MachineName: "m", StartedAt: at.Draw(t, "started"), EndedAt: at.Draw(t, "attempt ended"),
				WorkerID: rapid.SampledFrom([]string{"", "w"}).Draw(t, "worker"), Machine: platform.Machine{ID: rapid.SampledFrom([]string{"", "148e"}).Draw(t, "machine")},
			},
		}
		if rapid.Bool().Draw(t, "output") {
			r.Output = &run.Output{Upload: run.Upload{FileName: rapid.StringN(1, 200, -1).Draw(t, "file"), Size: rapid.Int64Range(-1, 1<<40).Draw(t, "size")}}
		}
		if r.JobID != "" && rapid.Bool().Draw(t, "fired") {
			r.FiredAt, r.ScheduledAt = at.Draw(t, "fired at"), at.Draw(t, "scheduled")
			if rapid.Bool().Draw(t, "missed") {
				r.Missed = &run.Missed{Reason: run.SkipLimit, Count: rapid.IntRange(1, 1e6).Draw(t, "count"), Until: at.Draw(t, "until")}
			}
		}
		e := run.Event{
			ID: run.EventID(at.Draw(t, "id time"), "x"), Seq: rapid.IntRange(1, 1000).Draw(t, "seq"), At: at.Draw(t, "at"),
			Type:  rapid.SampledFrom(runTypes()).Draw(t, "type"),
			State: rapid.SampledFrom(run.States()).Draw(t, "to"), From: rapid.SampledFrom(append(run.States(), "")).Draw(t, "from"),
			Attempt: rapid.IntRange(0, 2).Draw(t, "of"), Message: text.Draw(t, "message"),
			Actor: run.Actor{Subject: rapid.SampledFrom([]string{"", "localhost"}).Draw(t, "actor")},
		}
		if rapid.Bool().Draw(t, "fault") {
			e.Fault = fault.New(fault.WorkerError, "%s", text.Draw(t, "why"))
		}
		published(t, s, port.Change{Run: r, Events: []run.Event{e}})
	})
}

// runTypes returns the types of events that a commit of a run can have.
func runTypes() (types []run.EventType) {
	derived := []eventtype.Type{eventtype.ExportCompleted, eventtype.PackRunArtifact, eventtype.PackRunLog}
	for _, info := range eventtype.All() {
		if info.Subject == eventtype.OfRun && !slices.Contains(derived, info.Type) {
			types = append(types, run.EventType(info.Type))
		}
	}
	return types
}

func TestStatusOfEachState(t *testing.T) {
	t.Parallel()
	want := map[run.State]events.Status{
		run.Completed: events.StatusCompleted, run.Failed: events.StatusFailed, run.Orphaned: events.StatusFailed, run.Cancelled: events.StatusCanceled,
	}
	s := schema(t)
	for _, state := range run.States() {
		e := run.Event{ID: run.EventID(nine, "x"), Seq: 2, At: nine, Type: run.EventQueued, State: state}
		job := published(t, s, port.Change{Run: sampleRun(spec.KindExport), Events: []run.Event{e}})[0].Job
		expected, terminal := want[state]
		if !terminal {
			expected = events.StatusRunning
		}
		if job.Status != expected || job.State != string(state) {
			t.Errorf("%s: got status %s of state %s, want %s", state, job.Status, job.State, expected)
		}
	}
}

func TestUnreadableChangeIsAnEvent(t *testing.T) {
	t.Parallel()
	e := api.Unreadable("acme", "n-17", nine)
	if again := api.Unreadable("acme", "n-17", nine); again.EventID != e.EventID || e.EventID == api.Unreadable("acme", "n-18", nine).EventID {
		t.Errorf("got %s and %s, want one id for each change", e.EventID, again.EventID)
	}
	document, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	published(t, schema(t), port.Change{Notes: []port.Note{{Tenant: "acme", ID: "n-17", At: nine, Document: document}}})
	if _, err := api.Events("https://sortie.example.org/", port.Change{Notes: []port.Note{{ID: "n-18", Document: json.RawMessage(fmt.Sprintf("%q", "text"))}}}); err == nil {
		t.Error("got no error for a note that is not an event")
	}
}

// TestEncodedEventsAreThePublished compares the encoded records of a commit with its published
// events.
func TestEncodedEventsAreThePublished(t *testing.T) {
	t.Parallel()
	d := run.New(sampleRun(spec.KindExport), nine)
	c := port.Change{Run: d.Run, Events: d.Events}
	records, err := api.Published("https://sortie.example.org/").Encode(c)
	all := published(t, schema(t), c)
	if err != nil || len(records) != len(all) {
		t.Fatalf("got %d records, %v, want %d", len(records), err, len(all))
	}
	for i, want := range all {
		want.Notifier = &events.Notifier{Channel: "orch.jobs", Delivery: events.DeliveryDSSE}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if r := records[i]; !events.Bare(r.Data) || string(r.Data) != string(text) || events.ID(r.ID) != want.EventID || !r.At.Equal(want.OccurredAt) {
			t.Errorf("got %+v %s, want %s", r, r.Data, text)
		}
	}
	c.Run.Tenant = "other"
	if records, err = api.Published("https://sortie.example.org/").Encode(c); err != nil || len(records) != len(all) {
		t.Errorf("got %d records, %v, want %d of another tenant", len(records), err, len(all))
	}
}
