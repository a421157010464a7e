package runs_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

type config = runs.Config

var (
	late      = spec.Constraints{CatchUpWindow: time.Second}
	informing = spec.Action{Type: spec.ActionWebhook, Hook: &spec.Hook{URL: "https://example.org/alert"}}
)

// runLate starts a run of the job that violates its window.
func (h *fixture) runLate(a spec.Actions) {
	h.Helper()
	d := run.New(run.Run{
		Tenant: client.Tenant, ID: "a", TaskID: "a", JobID: "nightly", ScheduledAt: h.clock.now.Add(-time.Hour), Policy: h.config.Policy,
		CorrelationID: "c", Work: spec.Work{Kind: spec.KindJob, Image: "worker", Program: &spec.Program{Completion: spec.CompletionExit}},
		Constraints: &late, Actions: &a,
	}, h.clock.now)
	_, err := h.store.Create(h.Context(), port.WriteOf(d), nil)
	h.ok(err)
	h.ok(h.engine.Start(h.Context(), d.Effects[0].Execution, []byte(`{"tenant":"local","runId":"a"}`)))
	h.step()
}

// TestWebhookLetsTheRunContinue sends a webhook about a violation. Its failure ends
// the run only if the action is critical.
func TestWebhookLetsTheRunContinue(t *testing.T) {
	t.Parallel()
	critical := informing
	critical.Critical = true
	for name, test := range map[string]struct {
		action  spec.Action
		failure string
		want    run.State
		event   string
	}{
		"taken":               {informing, "", run.Running, "action_executed"},
		"not taken":           {informing, "status 500", run.Running, "action_failed"},
		"not taken, critical": {critical, "status 500", run.Failed, "action_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			h.hooks.unknown, h.hooks.failures = 2, map[string]string{informing.Hook.URL: test.failure}
			h.runLate(onViolation(test.action))
			h.advance(5 * time.Second)
			h.wantState("a", test.want)
			h.wantEvents("a", test.event)
			if got := strings.Join(h.hooks.notified, ","); got != "a catchUpWindow" {
				t.Errorf("got webhooks %q, want one", got)
			}
		})
	}
}

// TestTriggeredJobHasALineage triggers a job, which triggers the next one, until a job
// would be triggered again.
func TestTriggeredJobHasALineage(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.job("publish")
	h.runLate(onViolation(spec.Action{Type: spec.ActionTriggerJob, JobID: "publish"}))
	h.wantState("a", run.Running)
	runs, _, err := h.store.List(h.Context(), client.Tenant, port.Page{JobID: "publish", Limit: 10})
	h.ok(err)
	child := run.JobRun{JobID: "publish", RunID: runs[0].ID}
	parent := h.record("a")
	if want := (run.JobRun{JobID: "nightly", RunID: "a"}); runs[0].TriggeredBy() != want || !slices.Equal(parent.Triggered, []run.JobRun{child}) || runs[0].Parent == nil || runs[0].Parent.JobRun != want {
		t.Errorf("got the child %+v and the parent's runs %+v, want them to name each other", runs[0].Parent, parent.Triggered)
	}
	events, err := h.store.Events(h.Context(), parent.Ref(), 0, 100)
	h.ok(err)
	if !slices.ContainsFunc(events, func(e run.Event) bool {
		return e.Type == run.EventActionExecuted && e.Triggered != nil && *e.Triggered == child
	}) {
		t.Errorf("got no executed action with the run %+v", child)
	}
	if len(runs) != 1 || runs[0].ParentRun != "a" || strings.Join(runs[0].Lineage, ",") != "nightly" || runs[0].Trigger != run.TriggerJob || runs[0].CorrelationID != "c" {
		t.Fatalf("got runs %+v of the triggered job, want one with its lineage", runs)
	}
	for id, want := range map[string]string{"nightly": "circle: nightly -> nightly", "unknown": "the job unknown does not exist"} {
		h := setup(t)
		h.runLate(onViolation(spec.Action{Type: spec.ActionTriggerJob, JobID: id}))
		h.wantState("a", run.Running)
		events, err := h.store.Events(h.Context(), run.Ref{Tenant: client.Tenant, ID: "a"}, 0, 100)
		h.ok(err)
		found := false
		for _, e := range events {
			found = found || e.Type == run.EventActionFailed && strings.Contains(e.Message, want)
		}
		if !found {
			t.Errorf("got no failed action with %q", want)
		}
	}
}

// TestTriggeredJobIsDeleted repeats an action after the job that it has triggered was deleted.
func TestTriggeredJobIsDeleted(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.job("publish")
	from := run.Run{Tenant: client.Tenant, ID: "a", CorrelationID: "c"}
	publish := spec.Action{Type: spec.ActionTriggerJob, JobID: "publish"}
	var children []run.JobRun
	trigger := func() string {
		t.Helper()
		child, failure, err := h.service.Triggered(t.Context(), from, publish, "key of the action")
		h.ok(err)
		if child != nil {
			children = append(children, *child)
		}
		return failure
	}
	first := trigger()
	h.ok(h.service.Jobs.Delete(t.Context(), client, "publish", change.Precondition{}))
	if again := trigger(); first != "" || again != "" {
		t.Errorf("got failures %q and %q, want none: the run exists", first, again)
	}
	from.ID = "b"
	if _, failure, err := h.service.Triggered(t.Context(), from, publish, "key of another action"); err != nil || failure != "the job publish does not exist" {
		t.Errorf("got %q, %v, want the failure of a job that does not exist", failure, err)
	}
	runs, _, err := h.store.List(t.Context(), client.Tenant, port.Page{JobID: "publish", Limit: 10})
	h.ok(err)
	if len(runs) != 1 || len(children) != 2 || children[0] != children[1] || children[0].RunID != runs[0].ID {
		t.Errorf("got %d triggered runs and the answers %v, want 1 run, named each time", len(runs), children)
	}
}

// TestTriggeredRunGetsParameters triggers a job with a text and the output of its parent.
func TestTriggeredRunGetsParameters(t *testing.T) {
	t.Parallel()
	fromOutput := spec.Action{Type: spec.ActionTriggerJob, JobID: "publish", Parameters: map[string]spec.TriggerParameter{
		"CHANNEL": {Text: "beta"}, "VERSION": {FromOutput: true},
	}}
	for name, row := range map[string]struct {
		output  *run.Output
		failure string
	}{
		"text":      {&run.Output{Upload: run.Upload{Key: "k", Size: 4, Digest: "sha256:1"}, Text: new("v1.2")}, ""},
		"empty":     {&run.Output{Text: new("")}, ""},
		"no output": {nil, "no output for the variable VERSION"},
		"no text":   {&run.Output{Upload: run.Upload{Size: 4}}, "no text in UTF-8"},
		"too large": {&run.Output{Upload: run.Upload{Size: limit.OutputText + 1}}, "16385 bytes, want at most 16384"},
	} {
		h := setup(t)
		h.job("publish")
		from := run.Run{Tenant: client.Tenant, ID: "a", JobID: "build", CorrelationID: "c", State: run.Completed, Output: row.output, Lineage: []string{"build"}}
		child, failure, err := h.service.Triggered(t.Context(), from, fromOutput, "key")
		h.ok(err)
		if row.failure != "" {
			if child != nil || !strings.Contains(failure, row.failure) {
				t.Errorf("%s: got %v, %q, want the failure %q", name, child, failure, row.failure)
			}
			continue
		}
		if child == nil {
			t.Fatalf("%s: got the failure %q, want a run", name, failure)
		}
		r := h.record(child.RunID)
		want := map[string]string{"CHANNEL": "beta", "VERSION": *row.output.Text}
		if p := r.Parent; !maps.Equal(r.Parameters, want) || r.Work.Program.Env["VERSION"].Value != want["VERSION"] || p == nil || p.State != run.Completed || *p.Output != row.output.Upload {
			t.Errorf("%s: got parameters %v and parent %+v, want %v and the parent's output", name, r.Parameters, r.Parent, want)
		}
	}
}

// TestActionAfterTheEndIsRepeatedUntilDone loses the first tries of an action that
// follows the end of a run.
//
// Rule 1 of shared/README.md.
func TestActionAfterTheEndIsRepeatedUntilDone(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *config) { c.Policy.Retry.MaxAttempts = 1 })
	h.runJob("a", spec.Constraints{}, spec.Actions{OnFailure: &informing})
	h.hooks.unknown = 2
	h.exit("a", 1)
	h.wantState("a", run.Failed)
	for range 20 {
		h.advance(time.Minute)
		_ = h.service.Sweep(h.Context(), 0)
		h.step()
	}
	if got := strings.Join(h.hooks.notified, ","); got != "a onFailure" {
		t.Errorf("got webhooks %q, want one", got)
	}
	h.wantEvents("a", "action_executed")
	if r := h.record("a"); len(r.Execution.Pending) != 0 || !r.Execution.ActBy.IsZero() {
		t.Errorf("got pending effects %+v, want none", r.Execution.Pending)
	}
}

// TestWebhookAfterTheEndIsSentUntilItIsTaken sends a webhook to a receiver that is down after
// the end of a run, for some hours or for more than a day.
func TestWebhookAfterTheEndIsSentUntilItIsTaken(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		down  time.Duration
		event run.EventType
	}{"some hours": {5 * time.Hour, run.EventActionExecuted}, "more than a day": {25 * time.Hour, run.EventActionFailed}} {
		h := setup(t, func(c *config) { c.Policy.Retry.MaxAttempts = 1 })
		h.runJob("a", spec.Constraints{}, spec.Actions{OnFailure: &informing})
		h.hooks.down = true
		h.exit("a", 1)
		ended := h.wantState("a", run.Failed).EndedAt
		for h.clock.now.Before(ended.Add(row.down)) {
			h.advance(10 * time.Minute)
			h.sweep()
			if r := h.record("a"); h.clock.now.Before(ended.Add(23 * time.Hour)) {
				wantUntaken(t, r, ended, h.clock.now)
			}
		}
		h.hooks.down = false
		for range 3 {
			h.advance(10 * time.Minute)
			h.sweep()
		}
		events, err := h.store.Events(t.Context(), h.record("a").Ref(), 0, 1000)
		h.ok(err)
		var about []run.Event
		for _, e := range events {
			if e.Type == run.EventActionExecuted || e.Type == run.EventActionFailed {
				about = append(about, e)
			}
		}
		if len(about) != 1 || about[0].Type != row.event || len(h.record("a").Execution.Pending) != 0 || len(h.record("a").UntakenActions()) != 0 {
			t.Errorf("%s: got events %+v and pending %+v, want one %s", name, about, h.record("a").Execution.Pending, row.event)
		}
		if gaveUp := row.event == run.EventActionFailed; gaveUp != (len(h.hooks.notified) == 0) || gaveUp && !strings.Contains(about[0].Message, "answered 503; given up after 24 hours") {
			t.Errorf("%s: got webhooks %v and %q", name, h.hooks.notified, about[0].Message)
		}
	}
}

// wantUntaken checks that a run shows its action that is repeated.
func wantUntaken(t *testing.T, r run.Run, ended, now time.Time) {
	t.Helper()
	found := r.UntakenActions()
	if len(found) != 1 {
		t.Fatalf("got %+v, want one action", found)
	}
	a := found[0]
	if a.Action != spec.OnFailure || a.Type != spec.ActionWebhook || a.Tries < 2 || a.Answer != "answered 503" || a.TriedAt.Before(now.Add(-10*time.Minute)) ||
		!a.NextAt.After(now) || !a.GiveUpAt.Equal(ended.Add(run.NotifyFor)) {
		t.Errorf("got %+v at %v, want the tries of onFailure, the next one, and a day after %v", a, now, ended)
	}
}

// TestWebhookHasTheTimeOfItsStep ends a run whose webhook may take longer than other
// effects of a commit.
func TestWebhookHasTheTimeOfItsStep(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *config) { c.Policy.Retry.MaxAttempts = 1 })
	h.runJob("a", spec.Constraints{}, spec.Actions{OnFailure: &informing})
	h.exit("a", 1)
	h.wantState("a", run.Failed)
	if len(h.hooks.notified) != 1 || h.hooks.limited {
		t.Errorf("got webhooks %v, limited %v, want one without a limit of its own", h.hooks.notified, h.hooks.limited)
	}
	events, err := h.store.Events(t.Context(), h.record("a").Ref(), 0, 1000)
	h.ok(err)
	if got, want := events[len(events)-1].Message, "onFailure: webhook: answered 204 No Content"; got != want {
		t.Errorf("got the last event %q, want %q", got, want)
	}
}

// TestHookAfterTheRunIsAskedOnce checks that the hook is called at the end of the run, not
// after each attempt.
func TestHookAfterTheRunIsAskedOnce(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.hooks.answers = map[string]spec.HookAnswer{"": {Detail: "not today"}}
	h.runJob("a", spec.Constraints{PostRunHook: &spec.Hook{}}, spec.Actions{OnSuccess: &informing})
	h.exit("a", 1)
	h.wantState("a", run.Retrying)
	h.advance(3 * time.Second)
	h.exit("a", 0)
	r := h.wantState("a", run.Completed)
	if got := strings.Join(h.hooks.asked, ","); got != "a postRunHook" || len(r.Violations) != 1 {
		t.Errorf("got hooks %q and violations %+v, want one of each", got, r.Violations)
	}
	if got := strings.Join(h.hooks.notified, ","); got != "a onSuccess" {
		t.Errorf("got webhooks %q, want one", got)
	}
}

// TestHookAfterTheRunIsAskedOnceWhileTheRecordChanges calls a hook that takes longer than the
// time after which the sweep changes the record.
func TestHookAfterTheRunIsAskedOnceWhileTheRecordChanges(t *testing.T) {
	t.Parallel()
	h := setup(t)
	version := int64(0)
	h.hooks.asking = func() {
		before := h.record("a").Version
		h.clock.now = h.clock.now.Add(time.Minute)
		h.sweep()
		version = h.record("a").Version - before
	}
	h.runJob("a", spec.Constraints{PostRunHook: &spec.Hook{}}, spec.Actions{})
	h.exit("a", 0)
	h.wantState("a", run.Completed)
	if got := strings.Join(h.hooks.asked, ","); got != "a postRunHook" || version == 0 {
		t.Errorf("got hooks %q while the record changed %d times, want one hook and a change", got, version)
	}
}
