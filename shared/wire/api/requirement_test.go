package api_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
)

var (
	eventIDForm = regexp.MustCompile(`^urn:orch:event:[0-7][0-9A-HJKMNP-TV-Z]{25}$`)
	digestForm  = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// TestEnvelopeHasItsProvenance checks the common fields of each event of some runs (EE-2.1 to
// EE-2.9, EE-2.12, EE-4.1, EE-4.2).
func TestEnvelopeHasItsProvenance(t *testing.T) {
	t.Parallel()
	s := schema(t)
	for name, l := range lives() {
		for _, e := range l.events(t, s) {
			if e.SchemaVersion != "orch.event.v1" || !eventIDForm.MatchString(e.EventID) || e.OccurredAt.Location() != time.UTC || e.OccurredAt.Before(nine) {
				t.Errorf("%s: got version %s, id %s and time %s of %s, want those of the contract", name, e.SchemaVersion, e.EventID, e.OccurredAt, e.EventType)
			}
			if e.TenantID != "acme" || e.ProjectID != "archive" || e.CorrelationID != "corr-1" || e.Actor.Subject == "" {
				t.Errorf("%s: got %+v, want the tenant, the project, the correlation id and the actor of %s", name, e, e.EventType)
			}
			if _, known := eventtype.Of(e.EventType); !known {
				t.Errorf("%s: got the unknown type %s", name, e.EventType)
			}
			if e.Job == nil {
				if e.Schedule == nil {
					t.Errorf("%s: got %s without a run and without a schedule", name, e.EventType)
				}
				continue
			}
			if e.Job.ID != l.start.TaskID || e.Job.RunID != l.start.ID || e.Job.DefinitionID != l.start.JobID {
				t.Errorf("%s: got the ids %s, %s and %s of %s, want those of task, run and job", name, e.Job.ID, e.Job.RunID, e.Job.DefinitionID, e.EventType)
			}
			if d := e.Job.PayloadDigest; d != l.start.PayloadDigest || d != "" && !digestForm.MatchString(d) {
				t.Errorf("%s: got the digest %q of %s, want that of the request", name, d, e.EventType)
			}
			if hasSlot := e.Job.Attempt > 0; hasSlot != strings.HasPrefix(e.Job.LeaseID, "lease_") || e.Job.TaskRunnerID != "" && !strings.HasPrefix(e.Job.TaskRunnerID, "tr_") {
				t.Errorf("%s: got lease %q and runner %q of %s in attempt %d", name, e.Job.LeaseID, e.Job.TaskRunnerID, e.EventType, e.Job.Attempt)
			}
		}
	}
}

// TestEachAttemptHasItsLease checks that a retry has another lease, and that the runner id is
// the machine, or the worker until the machine is known (EE-2.22).
func TestEachAttemptHasItsLease(t *testing.T) {
	t.Parallel()
	leases, runners := map[int]string{}, map[string]bool{}
	l := lives()["a_run_is_retried"]
	l.facts = append(slices.Clone(l.facts), run.Admitted{}, run.WorkerContacted{Attempt: 2, WorkerID: "w2", Started: true})
	for _, e := range l.events(t, schema(t)) {
		if e.Job.Attempt > 0 {
			if lease := leases[e.Job.Attempt]; lease != "" && lease != e.Job.LeaseID {
				t.Errorf("got the leases %s and %s in attempt %d, want one", lease, e.Job.LeaseID, e.Job.Attempt)
			}
			leases[e.Job.Attempt] = e.Job.LeaseID
		}
		runners[e.Job.TaskRunnerID] = true
	}
	if len(leases) != 2 || leases[1] == leases[2] || !runners["tr_148e"] || !runners["tr_w2"] {
		t.Errorf("got the leases %v and the runners %v, want a lease of each attempt, tr_148e and tr_w2", leases, slices.Sorted(maps.Keys(runners)))
	}
}

// TestReasonOfARun checks when an event has a reason, and which one (EE-2.11, EE-2.21).
func TestReasonOfARun(t *testing.T) {
	t.Parallel()
	s := schema(t)
	for name, row := range map[string]struct {
		event run.Event
		want  events.Reason
	}{
		"cancel request":            {run.Event{Type: run.EventCancelRequested, State: run.Running}, "user_cancelled"},
		"cancelled":                 {run.Event{Type: run.EventCancelled, State: run.Cancelled}, "user_cancelled"},
		"retry":                     {run.Event{Type: run.EventRetryScheduled, State: run.Retrying}, "retry_backoff"},
		"queued at a limit":         {run.Event{Type: run.EventQueued, State: run.Pending}, "quota_paused"},
		"queued for the job's slot": {run.Event{Type: run.EventQueued, State: run.ActionRunning}, "quota_paused"},
		"queued for the platform":   {run.Event{Type: run.EventQueued, State: run.ContainerCreating}, ""},
		"running":                   {run.Event{Type: run.EventStarted, State: run.Running}, ""},
		"failed":                    {run.Event{Type: run.EventFailed, State: run.Failed, Fault: fault.New(fault.WorkerError, "x")}, ""},
	} {
		row.event.ID, row.event.Seq, row.event.At = run.EventID(nine, name), 2, nine
		if got := published(t, s, port.Change{Run: sampleRun(spec.KindExport), Events: []run.Event{row.event}})[0].Job.Reason; got != row.want {
			t.Errorf("%s: got the reason %q, want %q", name, got, row.want)
		}
	}
}

// TestTypeOfAJob checks the job type for each kind of work (EE-2.19).
func TestTypeOfAJob(t *testing.T) {
	t.Parallel()
	s := schema(t)
	for kind, want := range map[string]events.JobType{spec.KindExport: "export", spec.KindJob: "pack-run", "inference": "inference"} {
		e := run.Event{ID: run.EventID(nine, kind), Seq: 2, At: nine, Type: run.EventQueued, State: run.Pending}
		if got := published(t, s, port.Change{Run: sampleRun(kind), Events: []run.Event{e}})[0].Job.Type; got != want {
			t.Errorf("%s: got the type %s, want %s", kind, got, want)
		}
	}
}

// TestElevatedScopesAreShown checks that the events of a request have the scopes of its token
// (EE-2.8, EE-4.3).
func TestElevatedScopesAreShown(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]eventtype.Type{"an_export_succeeds": eventtype.Accepted, "a_run_is_cancelled": eventtype.CancelRequested} {
		l := lives()[name]
		want := events.Actor{Subject: "token/3f9a1c", Scopes: []string{"runs:write", "orch:quota"}}
		if kind == eventtype.CancelRequested {
			l.facts = []run.Fact{run.CancelRequested{By: want.Subject, Scopes: want.Scopes}}
		}
		all := l.events(t, schema(t))
		i := slices.IndexFunc(all, func(e events.Envelope) bool { return e.EventType == kind })
		if i < 0 || all[i].Actor.Subject != want.Subject || !slices.Equal(all[i].Actor.Scopes, want.Scopes) {
			t.Errorf("%s: got %+v, want %s by %+v", name, all, kind, want)
		}
	}
}

// TestOutputIsAnArtifact checks the event about an accepted output, which follows that of the
// end (EE-2.13, EE-3.5).
func TestOutputIsAnArtifact(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]eventtype.Type{"an_export_succeeds": "export.completed", "a_program_has_output": "pack_run.artifact"} {
		var end, output *events.Envelope
		for _, e := range lives()[name].events(t, schema(t)) {
			switch e.EventType {
			case eventtype.Completed:
				end = &e
			case want:
				output = &e
			}
		}
		if end == nil || output == nil || output.EventID == end.EventID || len(output.Job.Artifacts) != 1 || !output.OccurredAt.Equal(end.OccurredAt) {
			t.Fatalf("%s: got %+v and %+v, want %s beside the end", name, end, output, want)
		}
		if a := output.Job.Artifacts[0]; a.URI != "https://sortie.example.org/download/"+output.Job.ID || a.MIME == "" || !digestForm.MatchString(a.Digest) {
			t.Errorf("%s: got the artifact %+v, want its address, digest and type", name, a)
		}
		if output.IdempotencyKey != "orch-"+string(want)+"-"+output.Job.ID+"-1" {
			t.Errorf("%s: got the key %s, want that of the only one of the attempt", name, output.IdempotencyKey)
		}
	}
}

// TestTimesOfAnAttempt checks the durations in the metrics of events (EE-2.14).
func TestTimesOfAnAttempt(t *testing.T) {
	t.Parallel()
	var duration, backoff any
	for _, e := range lives()["a_run_is_retried"].events(t, schema(t)) {
		switch e.EventType {
		case eventtype.AttemptEnded:
			duration = e.Metrics["durationSeconds"]
		case eventtype.RetryScheduled:
			backoff = e.Metrics["backoffSeconds"]
		}
	}
	seconds, ok := backoff.(float64)
	if duration != 60.0 || !ok || seconds <= 0 || seconds > 30 {
		t.Errorf("got %v s of an attempt and %v s of backoff, want 60 and at most 30", duration, backoff)
	}
}

// TestTypesOfTheContract compares the types with those of the contract, and with those that the
// record of a run can have (EE-2.3, EE-2.18, EE-3.8).
func TestTypesOfTheContract(t *testing.T) {
	t.Parallel()
	settled := []eventtype.Type{
		"job.zombie_detected", "job.constraint_violated", "job.conditions_met", "job.action_executed", "job.action_failed", "job.expected_time_exceeded", "schedule.fired",
		"job.skipped", "schedule.skipped", "export.completed", "pack_run.log", "pack_run.artifact", "policy.updated", "relay.unreadable", "webhook.test",
	}
	known := map[eventtype.Type]bool{}
	for _, info := range eventtype.All() {
		known[info.Type] = true
		if !slices.Contains(settled, info.Type) && !strings.HasPrefix(string(info.Type), "job.") {
			t.Errorf("got the type %s, want one of a run", info.Type)
		}
	}
	for _, each := range settled {
		if !known[each] {
			t.Errorf("got no type %s", each)
		}
	}
	for name, l := range lives() {
		d := run.New(l.start, nine)
		if l.skipped {
			d = run.NewSkipped(l.start, nine)
		}
		for i := -1; i < len(l.facts); i++ {
			if i >= 0 {
				var err error
				if d, err = run.Decide(d.Run, l.facts[i], nine.Add(time.Duration(i+1)*time.Minute)); err != nil {
					t.Fatal(err)
				}
			}
			for _, e := range d.Events {
				all, err := api.Events("https://sortie.example.org", port.Change{Run: d.Run, Events: []run.Event{e}})
				if err != nil || string(all[0].EventType) != string(e.Type) || all[0].EventID != events.ID(e.ID) {
					t.Errorf("%s: got %+v, %v for %s, want the type and the id of the record", name, all, err, e.Type)
				}
			}
		}
	}
}

// TestEventWithoutARun checks that an event without a run has no fields about one (EE-2.23).
func TestEventWithoutARun(t *testing.T) {
	t.Parallel()
	all := lives()["firings_are_skipped"].events(t, schema(t))
	without := slices.DeleteFunc(append(all, api.Unreadable("acme", "n-1", nine)), func(e events.Envelope) bool { return e.Job != nil })
	if len(without) != 2 {
		t.Fatalf("got %+v, want the skipped firings and the unreadable record", without)
	}
	for _, e := range without {
		document, err := json.Marshal(e)
		if err != nil || strings.Contains(string(document), `"job":`) {
			t.Errorf("got %s, %v, want no part about a run", document, err)
		}
	}
}
