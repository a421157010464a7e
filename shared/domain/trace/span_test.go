package trace_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/domain/trace"
)

var epoch = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// life applies facts to a run and collects the spans of each commit.
type life struct {
	*testing.T
	now   time.Time
	run   run.Run
	spans []trace.Span
}

func begin(t *testing.T, r run.Run) *life {
	t.Helper()
	r.Tenant, r.ID, r.TaskID = "default", "job_1", "job_1"
	r.Work = spec.Work{Kind: spec.KindJob, Program: &spec.Program{}}
	r.Policy.Retry.MaxAttempts, r.Policy.Retry.InitialDelay, r.Policy.StartTimeout = 2, time.Second, time.Minute
	l := &life{T: t, now: epoch}
	d := run.New(r, l.now)
	l.run = d.Run
	l.spans = trace.OfCommit(d.Run, d.Events)
	return l
}

func (l *life) play(after time.Duration, f run.Fact) {
	l.Helper()
	l.now = l.now.Add(after + 400*time.Microsecond)
	d, err := run.Decide(l.run, f, l.now)
	if err != nil || !d.Changed {
		l.Fatalf("%T: got %v, changed %v, want a change in %s", f, err, d.Changed, l.run.State)
	}
	spans := trace.OfCommit(d.Run, d.Events)
	if diff := cmp.Diff(spans, trace.OfCommit(d.Run, d.Events)); diff != "" {
		l.Error(diff)
	}
	l.run, l.spans = d.Run, append(l.spans, spans...)
}

// retried plays a run whose first attempt fails and whose second one succeeds.
func retried(t *testing.T, r run.Run) *life {
	t.Helper()
	l := begin(t, r)
	admitted := run.Admitted{Pool: "p", Limit: 2}
	l.play(time.Second, admitted)
	l.play(time.Second, run.MachineCreated{Attempt: 1, Machine: platform.Machine{ID: "m-1"}})
	l.play(time.Second, run.MachineRunning{Attempt: 1})
	l.play(10*time.Second, run.MachineGone{Attempt: 1, Exit: &run.Exit{Code: 137, Signal: 9, OOM: true}})
	l.play(time.Second, run.Settled{})
	l.play(2*time.Second, run.Due{})
	l.play(time.Second, admitted)
	l.play(time.Second, run.MachineRunning{Attempt: 2})
	l.play(20*time.Second, run.Reported{Attempt: 2, Report: run.Report{Digest: "d", Success: true}})
	l.play(time.Second, run.Settled{})
	if l.run.State != run.Completed {
		t.Fatalf("got %s, want Completed", l.run.State)
	}
	return l
}

// tree returns the spans below a parent as indented text, with their durations and events.
func tree(spans []trace.Span, parent trace.SpanID, indent string) string {
	var text strings.Builder
	for _, s := range spans {
		if s.Parent != parent {
			continue
		}
		var events []string
		for _, e := range s.Events {
			events = append(events, e.Name)
		}
		failed := ""
		if s.Failed {
			failed = " failed"
		}
		fmt.Fprintf(&text, "%s%s %s%s %v\n%s", indent, s.Name, s.End.Sub(s.Start).Round(10*time.Millisecond), failed, events, tree(spans, s.ID, indent+"  "))
	}
	return text.String()
}

func TestSpansOfARetriedRun(t *testing.T) {
	t.Parallel()
	l := retried(t, run.Run{Trigger: run.TriggerRequest})
	const want = `request 0s [job.accepted]
  run 39s []
    Pending 1s [job.admitted]
    attempt 13s failed []
      ContainerCreating 2s [job.started]
      job.machine_created 0s []
      Running 10s failed [job.attempt_ended]
      Terminating 1s failed [job.retry_scheduled]
    Retrying 2s [job.retry_due]
    Pending 1s [job.admitted]
    attempt 22s []
      ContainerCreating 1s [job.started]
      Running 20s [job.attempt_ended]
      Terminating 1s [job.completed]
`
	if diff := cmp.Diff(want, order(l.spans)); diff != "" {
		t.Error(diff)
	}
}

// order returns the tree of all spans. The spans of each level are sorted by start time.
func order(spans []trace.Span) string {
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans, func(a, b trace.Span) int { return a.Start.Compare(b.Start) })
	return tree(spans, trace.SpanID{}, "")
}

// TestStatesAddUpToTheRun checks that the spans of states cover the run without gaps, and that
// the span of an attempt covers its states.
func TestStatesAddUpToTheRun(t *testing.T) {
	t.Parallel()
	l := retried(t, run.Run{Trigger: run.TriggerSchedule})
	ids, byName := map[trace.SpanID]bool{}, map[string][]trace.Span{}
	var states []trace.Span
	for _, s := range l.spans {
		if ids[s.ID] || s.Trace != trace.Of(l.run).Trace {
			t.Errorf("got span %s of trace %s, want another id in the run's trace", s.ID, s.Trace)
		}
		ids[s.ID] = true
		byName[s.Name] = append(byName[s.Name], s)
		if run.State(s.Name).Valid() {
			states = append(states, s)
		}
	}
	at := l.run.CreatedAt.Truncate(time.Millisecond)
	for _, s := range states {
		if !s.Start.Equal(at) || s.End.Before(s.Start) {
			t.Errorf("%s: got %s to %s, want a start at %s", s.Name, s.Start, s.End, at)
		}
		at = s.End
	}
	whole := byName[trace.NameRun][0]
	if !at.Equal(whole.End) || !whole.End.Equal(l.run.EndedAt.Truncate(time.Millisecond)) || whole.Parent != (trace.SpanID{}) {
		t.Errorf("got states until %s and a run %+v, want the same end, and no parent of a scheduled run", at, whole)
	}
	for i, attempt := range byName[trace.NameAttempt] {
		create, end := byName[string(run.ContainerCreating)][i], byName[string(run.Terminating)][i]
		if !attempt.Start.Equal(create.Start) || !attempt.End.Equal(end.End) || create.Parent != attempt.ID || end.Parent != attempt.ID {
			t.Errorf("got attempt %+v, want it from %s to %s", attempt, create.Start, end.End)
		}
	}
	l.run.Attempt.Number = 1
	if worker := trace.OfAttempt(l.run).Span; worker != byName[trace.NameAttempt][0].ID {
		t.Errorf("got the worker's parent %s, want the span of attempt 1, %s", worker, byName[trace.NameAttempt][0].ID)
	}
}

func TestRequestIsAChildOfTheClientsSpan(t *testing.T) {
	t.Parallel()
	c, _ := trace.Parse(client)
	l := begin(t, run.Run{TraceParent: client})
	if s := l.spans[0]; s.Name != trace.NameRequest || !s.Server || s.Parent != c.Span || s.Trace != c.Trace {
		t.Errorf("got %+v, want a request below the client's span", s)
	}
}

func TestFailedRunHasItsFault(t *testing.T) {
	t.Parallel()
	l := begin(t, run.Run{JobID: "nightly", CorrelationID: "c"})
	l.run.Policy.Retry.MaxAttempts = 1
	l.play(time.Second, run.Admitted{Pool: "p", Limit: 1})
	l.play(time.Second, run.MachineRunning{Attempt: 1})
	l.play(time.Second, run.MachineGone{Attempt: 1, Exit: &run.Exit{Code: 3}})
	l.play(time.Second, run.Settled{})
	s := l.spans[len(l.spans)-1]
	got := map[string]any{}
	for _, a := range s.Attributes {
		got[a.Name] = a.Value
	}
	want := map[string]any{
		"tenant": "default", "run_id": "job_1", "task_id": "job_1", "correlation_id": "c", "job_id": "nightly", "kind": spec.KindJob,
		"state": "Failed", "attempt": int64(1), "fault": string(l.run.Fault.Code),
	}
	if diff := cmp.Diff(want, got); diff != "" || s.Name != trace.NameRun || !s.Failed || s.Message != l.run.Fault.Message {
		t.Errorf("got %+v, want a failed run: %s", s, diff)
	}
}

func TestCancelIsNoFailure(t *testing.T) {
	t.Parallel()
	l := begin(t, run.Run{})
	l.play(time.Second, run.CancelRequested{By: "a"})
	l.play(time.Second, run.Admitted{Pool: "p", Limit: 1})
	if l.run.State != run.Cancelled {
		t.Fatalf("got %s, want Cancelled", l.run.State)
	}
	for _, s := range l.spans {
		if s.Failed {
			t.Errorf("got the failed span %s, want none", s.Name)
		}
	}
}

// TestSkippedFiringIsARun checks the span of a record of missed firings, which is created in the
// state Completed.
func TestSkippedFiringIsARun(t *testing.T) {
	t.Parallel()
	r := run.Run{Tenant: "default", ID: "nightly:1", Trigger: run.TriggerSchedule, State: run.Completed, CreatedAt: epoch, EnteredAt: epoch}
	spans := trace.OfCommit(r, []run.Event{{Seq: 1, Type: run.EventCompleted, At: epoch, State: run.Completed}})
	if got, want := order(spans), "run 0s []\n  job.completed 0s []\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestEventAfterTheEndIsASpan checks the span of an action after the end of a run.
func TestEventAfterTheEndIsASpan(t *testing.T) {
	t.Parallel()
	r := run.Run{Tenant: "default", ID: "a", State: run.Completed, CreatedAt: epoch, EnteredAt: epoch.Add(time.Second)}
	at := epoch.Add(time.Minute)
	spans := trace.OfCommit(r, []run.Event{{Seq: 9, Type: run.EventActionExecuted, At: at, From: run.Completed, State: run.Completed}})
	if len(spans) != 1 || spans[0].Name != string(run.EventActionExecuted) || !spans[0].Start.Equal(at) || spans[0].Parent != trace.Of(r).Span {
		t.Errorf("got %+v, want one span of the event below the run", spans)
	}
}

// TestEngineOfATaskHasASpan checks that the request to an engine is a child span of the attempt
// with an event for the first token, and that OfEngine returns its context.
func TestEngineOfATaskHasASpan(t *testing.T) {
	t.Parallel()
	r := run.Run{Tenant: "default", ID: "inf_1", TaskID: "inf_1", Work: spec.Work{Kind: spec.KindInference, Inference: &spec.Inference{Engine: "vllm", Model: "m"}}}
	r.Policy.Retry.MaxAttempts, r.Policy.StartTimeout, r.Policy.TimeLimit = 1, time.Minute, time.Minute
	d := run.New(r, epoch)
	l := &life{T: t, now: epoch, run: d.Run}
	l.play(time.Second, run.Admitted{Pool: "p", Limit: 2})
	l.play(time.Second, run.WorkerContacted{Attempt: 1, WorkerID: "dispatcher", Started: true})
	if len(named(l.spans, trace.NameEngine)) > 0 {
		t.Fatal("got the span of an engine before its request")
	}
	asked := l.now.Add(100 * time.Millisecond)
	used := run.Generation{Replica: "r1", EngineVersion: "0.11", RequestedAt: asked, FirstTokenAt: asked.Add(30 * time.Millisecond), TokensIn: 4, TokensOut: 9, DecodeMS: 250, Finish: "stop"}
	engine := trace.OfEngine(l.run)
	l.play(time.Second, run.GenerationEnded{Attempt: 1, Stream: &run.StreamEnd{Outcome: run.OutcomeSucceeded}, Generation: &used})
	spans := named(l.spans, trace.NameEngine)
	if len(spans) != 1 {
		t.Fatalf("got %d spans of an engine in\n%s, want one", len(spans), tree(l.spans, trace.OfAttempt(l.run).Span, ""))
	}
	s := spans[0]
	if s.ID != engine.Span || s.Trace != engine.Trace || s.Parent != trace.OfAttempt(l.run).Span || s.Failed {
		t.Errorf("got %+v, want the span %s below the attempt", s, engine)
	}
	if !s.Start.Equal(asked.Truncate(time.Millisecond)) || s.End.Sub(s.Start).Round(time.Millisecond) != 250*time.Millisecond || len(s.Events) != 1 || s.Events[0].Name != trace.EventFirstToken {
		t.Errorf("got %s to %s with %+v, want 250 ms from the request and the first token", s.Start, s.End, s.Events)
	}
	for name, want := range map[string]any{"engine": "vllm", "engine_version": "0.11", "replica_id": "r1", "model": "m", "tokens_in": int64(4), "tokens_out": int64(9), "first_token_ms": int64(30)} {
		if i := slices.IndexFunc(s.Attributes, func(a trace.Attribute) bool { return a.Name == name }); i < 0 || s.Attributes[i].Value != want {
			t.Errorf("got the attributes %+v, want %s %v", s.Attributes, name, want)
		}
	}
}

func named(spans []trace.Span, name string) (found []trace.Span) {
	for _, s := range spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}
