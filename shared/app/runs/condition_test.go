package runs_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// job stores a job without a schedule.
func (h *fixture) job(id string) {
	h.Helper()
	d, problems := job.Parse([]byte(`{"id": "`+id+`", "name": "n", "image": "worker"}`), nil)
	if len(problems) > 0 {
		h.Fatalf("%v", problems)
	}
	h.ok(h.store.SaveJob(h.Context(), job.Create(client.Tenant, d, client.Subject, h.clock.now)))
}

// runJob starts a run of the job "nightly".
func (h *fixture) runJob(id string, c spec.Constraints, a spec.Actions) string {
	h.Helper()
	h.createJobRun(id, c, a)()
	return id
}

// createJobRun creates a run of the job "nightly". start starts its execution.
func (h *fixture) createJobRun(id string, c spec.Constraints, a spec.Actions) (start func()) {
	h.Helper()
	h.clock.to(h.clock.now.Add(time.Second))
	r := run.Run{
		Tenant: client.Tenant, Workspace: client.Workspace, ID: id, TaskID: id, CorrelationID: "c", JobID: "nightly",
		Work: spec.Work{Kind: spec.KindJob, Image: "worker", Program: &spec.Program{Completion: spec.CompletionExit}}, Policy: h.config.Policy,
		Constraints: &c, Actions: &a,
	}
	d := run.New(r, h.clock.now)
	_, err := h.store.Create(h.Context(), port.WriteOf(d), nil)
	h.ok(err)
	input, err := json.Marshal(r.Ref())
	h.ok(err)
	return func() {
		h.ok(h.engine.Start(h.Context(), d.Effects[0].Execution, input))
		h.step()
	}
}

// exit ends the machine of a run with an exit code.
func (h *fixture) exit(id string, code int) {
	h.Helper()
	h.machineOf(id).exit(code)
	h.sweep()
}

func (h *fixture) machineOf(id string) *machine {
	h.Helper()
	for _, m := range h.runner.launched {
		if m.Owner.RunID == id && m.Owner.Attempt == h.record(id).Attempt.Number {
			return m
		}
	}
	h.Fatalf("run %s has no machine", id)
	return nil
}

func onViolation(a spec.Action) spec.Actions { return spec.Actions{OnViolation: &a} }

var oneRun = spec.Constraints{MaxConcurrentRuns: 1}

// TestSkipCompletesTheRun skips the second run of a job with one slot.
func TestSkipCompletesTheRun(t *testing.T) {
	t.Parallel()
	h := setup(t)
	first := h.runJob("a", oneRun, spec.Actions{})
	second := h.runJob("b", oneRun, spec.Actions{OnViolation: &spec.Action{Type: spec.ActionSkip}, OnSuccess: &informing, OnFailure: &informing})
	if len(h.hooks.notified) > 0 {
		t.Errorf("got webhooks %v of a skipped run, want none", h.hooks.notified)
	}
	h.wantState(first, run.Running)
	r := h.wantState(second, run.Completed)
	if !r.Skipped || r.Attempt.Number != 0 || len(r.Violations) != 1 || r.Violations[0].Constraint != spec.MaxConcurrentRuns {
		t.Errorf("got skipped %v, attempt %d, violations %+v", r.Skipped, r.Attempt.Number, r.Violations)
	}
	h.exit(first, 0)
	h.wantState(h.runJob("c", oneRun, spec.Actions{}), run.Running)
}

// TestWaitStartsWithTheCommitThatFreesTheSlot ends the awaited run. The next run of
// the queue gets its job's slot in the same commit.
//
// Rule 6 of shared/README.md.
func TestWaitStartsWithTheCommitThatFreesTheSlot(t *testing.T) {
	t.Parallel()
	h := setup(t)
	wait := onViolation(spec.Action{Type: spec.ActionWait, Limit: time.Hour})
	tasks := []string{h.runJob("a", oneRun, wait), h.runJob("b", oneRun, wait), h.runJob("c", oneRun, wait)}
	for _, waiting := range tasks[1:] {
		if r := h.wantState(waiting, run.ActionRunning); r.Slot.State != "" || r.JobSlot.State != platform.SlotQueued {
			t.Errorf("got slots %+v and %+v of a waiting run, want a place in the job's queue only", r.Slot, r.JobSlot)
		}
	}
	for i, task := range tasks {
		h.wantState(task, run.Running)
		h.exit(task, 0)
		h.wantState(task, run.Completed)
		if i+1 < len(tasks) && !h.runTogether(task, tasks[i+1]) {
			t.Errorf("got two commits for the end of run %s and the next grant, want one", task)
		}
	}
}

// TestWaitEndsAtItsLimit waits for a run that does not end.
func TestWaitEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	for _, action := range []spec.ActionType{spec.ActionWait, spec.ActionRetryLater, spec.ActionKillOld} {
		t.Run(string(action), func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			h.runJob("a", oneRun, spec.Actions{})
			second := h.runJob("b", oneRun, onViolation(spec.Action{Type: action, Limit: 90 * time.Second, Delay: 10 * time.Second}))
			h.wantState(second, run.ActionRunning)
			h.advance(91 * time.Second)
			if r := h.record(second); action != spec.ActionKillOld && (r.State != run.Failed || r.Fault.Code != fault.ActionTimeout) {
				t.Errorf("got %s with %+v, want ACTION_TIMEOUT", r.State, r.Fault)
			}
		})
	}
}

// TestRetryLaterStartsAfterItsDelay frees the slot during the delay.
func TestRetryLaterStartsAfterItsDelay(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runJob("a", oneRun, spec.Actions{})
	second := h.runJob("b", oneRun, onViolation(spec.Action{Type: spec.ActionRetryLater, Delay: time.Minute, Limit: time.Hour}))
	h.exit("a", 0)
	h.wantState(second, run.ActionRunning)
	h.advance(time.Minute + 2*time.Second)
	h.wantState(second, run.Running)
}

// TestKillOldCancelsOlderRuns replaces a running run.
func TestKillOldCancelsOlderRuns(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runJob("a", oneRun, spec.Actions{})
	second := h.runJob("b", oneRun, onViolation(spec.Action{Type: spec.ActionKillOld}))
	h.wantState(second, run.ActionRunning)
	if r := h.record("a"); r.Cancel == nil || !strings.Contains(r.Cancel.Reason, "b") {
		t.Fatalf("got cancel request %+v of the older run, want one that names the newer", r.Cancel)
	}
	h.exit("a", 143)
	h.wantState("a", run.Cancelled)
	h.wantState(second, run.Running)
}

// TestKillOldCancelsTheOldestRuns replaces a run of a job whose limit was lowered.
func TestKillOldCancelsTheOldestRuns(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runner.ignoresSIGTERM = true
	for _, id := range []string{"a", "b", "c"} {
		h.runJob(id, spec.Constraints{MaxConcurrentRuns: 3}, spec.Actions{})
	}
	newest := h.runJob("d", spec.Constraints{MaxConcurrentRuns: 2}, onViolation(spec.Action{Type: spec.ActionKillOld}))
	for _, id := range []string{"a", "b"} {
		h.wantState(newest, run.ActionRunning)
		h.exit(id, 143)
		h.wantState(id, run.Cancelled)
	}
	h.wantState(newest, run.Running)
	if r := h.wantState("c", run.Running); r.Cancel != nil {
		t.Errorf("got cancel request %+v of a run that keeps its slot, want none", r.Cancel)
	}
}

// TestKillOldRespectsNewerRuns lets an older run start after a newer one that has the
// only slot of the job.
func TestKillOldRespectsNewerRuns(t *testing.T) {
	t.Parallel()
	h := setup(t)
	start := h.createJobRun("older", oneRun, onViolation(spec.Action{Type: spec.ActionKillOld}))
	h.runJob("newer", oneRun, spec.Actions{})
	start()
	h.wantState("older", run.ActionRunning)
	if r := h.wantState("newer", run.Running); r.Cancel != nil {
		t.Errorf("got cancel request %+v of the newer run, want none", r.Cancel)
	}
	h.exit("newer", 0)
	h.wantState("older", run.Running)
}

// TestWaitingRunCanBeCancelled cancels a run in the queue of its job.
func TestWaitingRunCanBeCancelled(t *testing.T) {
	t.Parallel()
	h := setup(t)
	wait := onViolation(spec.Action{Type: spec.ActionWait})
	h.runJob("a", oneRun, wait)
	second, third := h.runJob("b", oneRun, wait), h.runJob("c", oneRun, wait)
	h.cancel(second)
	h.step()
	h.wantState(second, run.Cancelled)
	h.exit("a", 0)
	h.wantState(third, run.Running)
}

// TestRunAfterAWaitQueuesForItsPool lets the pool fill up during a wait.
func TestRunAfterAWaitQueuesForItsPool(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine)
	wait := onViolation(spec.Action{Type: spec.ActionWait})
	h.runJob("a", oneRun, wait)
	second := h.runJob("b", oneRun, wait)
	h.wantState(second, run.Pending) // it queues for the pool before its constraints
	export := h.post()
	h.exit("a", 0)
	h.wantState(second, run.Running)
	h.exit(second, 0)
	h.wantState(export, run.Running)
}

// TestPreviousSuccessIsRequired runs a job after a failure and after a success. A
// skipped run counts as neither.
func TestPreviousSuccessIsRequired(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *config) { c.Policy.Retry.MaxAttempts = 1 })
	h.job("nightly")
	c := spec.Constraints{RequirePreviousSuccess: true}
	h.exit(h.runJob("a", c, spec.Actions{}), 1)
	h.wantState("a", run.Failed)
	for _, id := range []string{"b", "c"} {
		r := h.wantState(h.runJob(id, c, spec.Actions{}), run.Completed)
		if !r.Skipped || r.Violations[0].Constraint != spec.RequirePreviousSuccess || !strings.Contains(r.Violations[0].Message, "run a") {
			t.Errorf("got violations %+v of run %s, want one about run a", r.Violations, id)
		}
	}
	h.exit(h.runJob("manual", spec.Constraints{}, spec.Actions{}), 0)
	h.wantState(h.runJob("d", c, spec.Actions{}), run.Running)
}

// TestHookBeforeTheRunDecides checks the effect of each answer of a hook.
func TestHookBeforeTheRunDecides(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		hook   spec.Hook
		answer spec.HookAnswer
		want   run.State
	}{
		"allows":                     {answer: spec.HookAnswer{Allowed: true}, want: run.Running},
		"refuses":                    {answer: spec.HookAnswer{Detail: "not today"}, want: run.Completed},
		"refuses, critical":          {spec.Hook{Critical: true}, spec.HookAnswer{Detail: "not today"}, run.Failed},
		"is away":                    {answer: spec.HookAnswer{Unavailable: true}, want: run.Completed},
		"is away, which is allowed":  {spec.Hook{AllowUnavailable: true}, spec.HookAnswer{Unavailable: true}, run.Running},
		"is away, critical":          {spec.Hook{Critical: true}, spec.HookAnswer{Unavailable: true}, run.Failed},
		"is away, critical, allowed": {spec.Hook{Critical: true, AllowUnavailable: true}, spec.HookAnswer{Unavailable: true}, run.Running},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			h.hooks.answers = map[string]spec.HookAnswer{"": test.answer}
			h.hooks.unknown = 1
			h.runJob("a", spec.Constraints{PreRunHook: &test.hook}, spec.Actions{})
			h.advance(2 * time.Second)
			h.wantState("a", test.want)
			if len(h.hooks.asked) != 1 {
				t.Errorf("got %v asked, want once", h.hooks.asked)
			}
		})
	}
}

// TestCheckIsAState reads the state of a run while its constraints are due and during the hook
// call.
func TestCheckIsAState(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.hooks.answers = map[string]spec.HookAnswer{"": {Allowed: true}}
	h.before[run.StepConditionRunning] = func(runs.StepInput) { h.wantState("a", run.ConditionPending) }
	h.hooks.asking = func() { h.wantState("a", run.ConditionRunning) }
	h.runJob("a", spec.Constraints{PreRunHook: &spec.Hook{}}, spec.Actions{})
	h.wantState("a", run.Running)
	if len(h.hooks.asked) != 1 {
		t.Errorf("got %v asked, want once", h.hooks.asked)
	}
}

// TestLateRunViolatesTheWindow starts a run later than its window allows.
func TestLateRunViolatesTheWindow(t *testing.T) {
	t.Parallel()
	for late, want := range map[time.Duration]run.State{time.Hour: run.Running, time.Hour + 2*time.Second: run.Completed} {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			d := run.New(run.Run{
				Tenant: client.Tenant, ID: "a", TaskID: "a", JobID: "nightly", ScheduledAt: h.clock.now.Add(-late), Policy: h.config.Policy,
				Work: spec.Work{Kind: spec.KindJob, Image: "worker", Program: &spec.Program{}}, Constraints: &spec.Constraints{CatchUpWindow: time.Hour},
			}, h.clock.now)
			_, err := h.store.Create(h.Context(), port.WriteOf(d), nil)
			h.ok(err)
			h.ok(h.engine.Start(h.Context(), d.Effects[0].Execution, []byte(`{"tenant":"local","runId":"a"}`)))
			h.step()
			h.wantState("a", want)
		})
	}
}

// TestNewestDefinitionReachesAWaitingRun changes a job while one run of it waits for
// its time and another one runs.
func TestNewestDefinitionReachesAWaitingRun(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.job("nightly")
	running := h.runJob("running", spec.Constraints{}, spec.Actions{})
	waiting := h.startRun(func(r *run.Run) {
		r.JobID, r.JobVersion, r.ScheduledAt = "nightly", 1, h.clock.now.Add(time.Hour)
		r.Parameters = map[string]string{"DAY": "monday"}
		r.Work = spec.Work{Kind: spec.KindJob, Image: "worker", Program: &spec.Program{Input: &spec.Input{Text: "older", Size: 5}}}
	})
	stored, err := h.store.LoadJob(h.Context(), client.Tenant, "nightly")
	h.ok(err)
	d := stored.Definition
	d.Input = "newer input"
	d.Image, d.Env = "newer", map[string]job.Variable{"DAY": {Value: "any"}, "LEVEL": {Value: "info"}}
	h.ok(h.store.SaveJob(h.Context(), stored.Apply(d, "someone", h.clock.now)))
	h.advance(time.Hour + time.Second)
	r := h.wantState(waiting, run.Running)
	want := map[string]spec.Variable{"DAY": {Value: "monday"}, "LEVEL": {Value: "info"}}
	h.equal(want, r.Work.Program.Env)
	if r.Work.Image != "newer" || r.JobVersion != 2 || r.Work.Program.Input == nil || r.Work.Program.Input.Text != "newer input" {
		t.Errorf("got image %s of version %d with input %+v, want the newest definition with its input", r.Work.Image, r.JobVersion, r.Work.Program.Input)
	}
	if r := h.record(running); r.Work.Image != "worker" {
		t.Errorf("got image %s of a run that was under way, want it unchanged", r.Work.Image)
	}
}
