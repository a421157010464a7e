package runs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// patch changes the definition of a job as a client does.
func (h *fixture) patch(ref job.Ref, patch string) {
	h.Helper()
	_, err := h.service.Jobs.Patch(h.Context(), client, ref.ID, []byte(patch), change.Precondition{})
	h.ok(err)
	h.step()
}

// limited returns the constraints and actions of a job definition that is not retried.
func limited(constraints, action string) string {
	return fmt.Sprintf("constraints: {%s}\nactions: {onConstraintViolation: {%s}}\nretryConfig: {maxRetries: 0}\n", constraints, action)
}

// TestConstraintsAreCheckedAgain lets a hook refuse a run twice. Each waiting action calls the
// hook again before the run starts.
func TestConstraintsAreCheckedAgain(t *testing.T) {
	t.Parallel()
	for _, action := range []spec.ActionType{spec.ActionRetryLater, spec.ActionWait, spec.ActionKillOld} {
		t.Run(string(action), func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			h.hooks.answers = map[string]spec.HookAnswer{"": {Detail: "frozen"}}
			c := spec.Constraints{MaxConcurrentRuns: 1, PreRunHook: &spec.Hook{}}
			h.runJob("a", c, onViolation(spec.Action{Type: action, Delay: 2 * time.Second, Limit: time.Hour}))
			h.advance(7 * time.Second)
			h.wantState("a", run.ActionRunning)
			if len(h.hooks.asked) < 2 {
				t.Errorf("got %v asked, want the hook to be asked again", h.hooks.asked)
			}
			h.hooks.answers[""] = spec.HookAnswer{Allowed: true}
			h.advance(10 * time.Second)
			h.wantState("a", run.Running)
		})
	}
}

// TestConstraintsAreCheckedAfterTheWaitForASlot grants a slot to a run whose hook refuses it by
// then. The slot is granted to the next run.
func TestConstraintsAreCheckedAfterTheWaitForASlot(t *testing.T) {
	t.Parallel()
	h := setup(t, manyMachines)
	h.hooks.answers = map[string]spec.HookAnswer{"": {Allowed: true}}
	wait := onViolation(spec.Action{Type: spec.ActionWait, Limit: time.Hour})
	c := spec.Constraints{MaxConcurrentRuns: 1, PreRunHook: &spec.Hook{}}
	h.runJob("a", c, wait)
	h.runJob("b", c, wait)
	h.runJob("c", oneRun, wait)
	h.hooks.answers[""] = spec.HookAnswer{Detail: "frozen"}
	h.exit("a", 0)
	h.wantState("b", run.ActionRunning)
	h.wantState("c", run.Running)
	h.hooks.answers[""] = spec.HookAnswer{Allowed: true}
	h.advance(time.Minute)
	h.wantState("b", run.ActionRunning)
	h.exit("c", 0)
	h.wantState("b", run.Running)
}

// TestCancelledRunIsNotCheckedAgain cancels a run whose constraints have become due.
func TestCancelledRunIsNotCheckedAgain(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.hooks.answers = map[string]spec.HookAnswer{"": {Detail: "frozen"}}
	ref := h.createJob("nightly", limited("maxConcurrentRuns: 1, preRunHook: {url: 'https://example.org/hook'}", "type: wait"))
	id := h.requested(ref, spec.Override{})
	h.wantState(id, run.ActionRunning)
	_, err := h.service.Jobs.Clear(h.Context(), client, ref.ID, change.Precondition{})
	h.ok(err)
	h.cancel(id)
	asked := len(h.hooks.asked)
	h.step()
	h.wantState(id, run.Cancelled)
	if len(h.hooks.asked) != asked {
		t.Errorf("got %d calls of the hook after the cancel, want none", len(h.hooks.asked)-asked)
	}
}

// TestRetryLaterIsBounded ends a run whose hook never allows it.
func TestRetryLaterIsBounded(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]spec.Action{
		"by its limit":          {Delay: 2 * time.Second, Limit: 10 * time.Second},
		"by its further checks": {Delay: 2 * time.Second, MaxRetries: 3, Limit: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			a.Type = spec.ActionRetryLater
			h.runJob("a", spec.Constraints{PreRunHook: &spec.Hook{}}, onViolation(a))
			h.advance(12 * time.Second)
			r := h.wantState("a", run.Failed)
			if r.Fault.Code != fault.ActionTimeout || !strings.Contains(r.Fault.Message, "preRunHook") || len(h.hooks.asked) != 4 {
				t.Errorf("got %+v after %d calls of the hook, want ACTION_TIMEOUT after 4", r.Fault, len(h.hooks.asked))
			}
		})
	}
}

// TestNextRunNeedsTheSuccessOfOneUnderWay runs a job that fails while the next run waits.
func TestNextRunNeedsTheSuccessOfOneUnderWay(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		constraints, action string
		code                int
		want                run.State
	}{
		"wait, failed, limit":       {"requirePreviousSuccess: true, maxConcurrentRuns: 1", "type: wait", 1, run.ActionRunning},
		"wait, succeeded, limit":    {"requirePreviousSuccess: true, maxConcurrentRuns: 1", "type: wait", 0, run.Running},
		"wait, failed, large limit": {"requirePreviousSuccess: true, maxConcurrentRuns: 3", "type: wait", 1, run.ActionRunning},
		"wait, succeeded":           {"requirePreviousSuccess: true", "type: wait", 0, run.Running},
		"wait, failed":              {"requirePreviousSuccess: true", "type: wait", 1, run.ActionRunning},
		"retry_later, succeeded":    {"requirePreviousSuccess: true", "type: retry_later, parameters: {delay: 1s}", 0, run.Running},
		"retry_later, failed":       {"requirePreviousSuccess: true", "type: retry_later, parameters: {delay: 1s}", 1, run.ActionRunning},
		"skip":                      {"requirePreviousSuccess: true", "type: skip", 0, run.Completed},
		"trigger_job":               {"requirePreviousSuccess: true", "type: trigger_job, parameters: {jobId: none}", 0, run.Running},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, manyMachines)
			ref := h.createJob("nightly", limited(row.constraints, row.action))
			first, second := h.requested(ref, spec.Override{}), h.requested(ref, spec.Override{})
			h.wantState(first, run.Running)
			r := h.record(second)
			if len(r.Violations) == 0 || !strings.Contains(fmt.Sprint(r.Violations), "previous_running: run "+first) {
				t.Errorf("got violations %v, want one about the run under way", r.Violations)
			}
			h.exit(first, row.code)
			h.advance(2 * time.Second)
			h.wantState(second, row.want)
		})
	}
}

// TestPreviousIsTheNewestEarlierRun looks past skipped runs, newer runs and replaced ones.
func TestPreviousIsTheNewestEarlierRun(t *testing.T) {
	t.Parallel()
	h := setup(t, manyMachines, func(c *runs.Config) { c.Policy.Retry.MaxAttempts = 1 })
	c := spec.Constraints{RequirePreviousSuccess: true}
	late := h.createJobRun("a", c, spec.Actions{})
	h.exit(h.runJob("b", spec.Constraints{}, spec.Actions{}), 3)
	late()
	h.wantState("a", run.Running) // b is newer
	h.exit("a", 0)
	if r := h.wantState(h.runJob("c", c, spec.Actions{}), run.Completed); !strings.Contains(r.Violations[0].Message, "run b failed") {
		t.Errorf("got %v, want a violation by run b", r.Violations)
	}
	h.exit(h.runJob("d", spec.Constraints{}, spec.Actions{}), 0)
	h.wantState(h.runJob("e", c, spec.Actions{}), run.Running)
}

// TestPreviousRunHasManyChildren: more children are newer than a list has runs.
func TestPreviousRunHasManyChildren(t *testing.T) {
	t.Parallel()
	h := setup(t, manyMachines)
	h.wantState(h.runJob("p", spec.Constraints{}, spec.Actions{}), run.Running)
	h.skippedChildren("p", 65)
	h.runJob("q", spec.Constraints{RequirePreviousSuccess: true}, spec.Actions{})
	if r := h.record("q"); r.State == run.Running {
		t.Errorf("got %s while the previous run has not ended", r.State)
	}
}

// TestCancelledRunIsNoSuccess checks that the violation names the cancel of the previous run.
func TestCancelledRunIsNoSuccess(t *testing.T) {
	t.Parallel()
	h := setup(t)
	ref := h.createJob("nightly", limited("requirePreviousSuccess: true", "type: skip"))
	first := h.requested(ref, spec.Override{})
	h.cancel(first)
	h.exit(first, 143)
	h.wantState(first, run.Cancelled)
	r := h.wantState(h.requested(ref, spec.Override{}), run.Completed)
	if got := r.Violations[0].Message; !strings.HasPrefix(got, "run "+first+" was cancelled at ") {
		t.Errorf("got %q, want the run to be called cancelled", got)
	}
}

// TestOverlappingRequestsLeaveTheNewest starts five runs with kill_old before any replaced run
// has exited.
func TestOverlappingRequestsLeaveTheNewest(t *testing.T) {
	t.Parallel()
	for slots := 1; slots <= 3; slots++ {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			t.Parallel()
			h := setup(t, manyMachines)
			h.runner.ignoresSIGTERM = true
			kill := onViolation(spec.Action{Type: spec.ActionKillOld})
			ids := []string{"a", "b", "c", "d", "e"}
			for _, id := range ids {
				h.runJob(id, spec.Constraints{MaxConcurrentRuns: slots}, kill)
			}
			for _, id := range ids {
				if r := h.record(id); r.Cancel != nil && r.State == run.Running {
					h.exit(id, 143)
				}
			}
			h.advance(time.Second)
			for i, id := range ids {
				want := run.Running
				if i < len(ids)-slots {
					want = run.Cancelled
				}
				h.wantState(id, want)
			}
		})
	}
}

// TestOlderRunThatJoinsLateIsReplaced lets an older run with kill_old join the queue after a
// newer one has started by it.
func TestOlderRunThatJoinsLateIsReplaced(t *testing.T) {
	t.Parallel()
	h := setup(t, manyMachines)
	kill := onViolation(spec.Action{Type: spec.ActionKillOld})
	start := h.createJobRun("older", oneRun, kill)
	h.runJob("newer", oneRun, kill)
	start()
	if r := h.wantState("older", run.Cancelled); !strings.Contains(r.Cancel.Reason, "newer") {
		t.Errorf("got %+v, want a request that names the newer run", r.Cancel)
	}
	h.wantState("newer", run.Running)
}

// TestWaitEndsWithTheWindow lets a run wait for a slot until its catchUpWindow has passed.
func TestWaitEndsWithTheWindow(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.createJob("nightly", limited("maxConcurrentRuns: 1, catchUpWindow: 30s", "type: wait"))
	h.runJob("a", oneRun, spec.Actions{})
	in := jobs.RunRequest{Identity: client, JobID: "nightly", CorrelationID: "c", ScheduledAt: h.clock.now.Add(10 * time.Second)}
	r, _, err := h.service.Jobs.RunJob(h.Context(), in)
	h.ok(err)
	h.advance(39 * time.Second)
	h.wantState(r.ID, run.ActionRunning)
	h.advance(3 * time.Second)
	if r := h.wantState(r.ID, run.Failed); r.Fault.Code != fault.ActionTimeout || !strings.Contains(r.Fault.Message, "catchUpWindow") {
		t.Errorf("got %+v, want ACTION_TIMEOUT that names the window", r.Fault)
	}
}

// TestClearForgetsTheLastResult clears the result of a job while a run waits, and before one.
func TestClearForgetsTheLastResult(t *testing.T) {
	t.Parallel()
	h := setup(t, manyMachines)
	ref := h.createJob("nightly", limited("requirePreviousSuccess: true", "type: wait"))
	forget := func() {
		h.Helper()
		_, err := h.service.Jobs.Clear(h.Context(), client, ref.ID, change.Precondition{})
		h.ok(err)
		h.step()
	}
	h.exit(h.requested(ref, spec.Override{}), 1)
	waiting := h.requested(ref, spec.Override{})
	h.wantState(waiting, run.ActionRunning)
	forget()
	h.wantState(waiting, run.Running)
	next := h.requested(ref, spec.Override{})
	forget() // the run under way still has to succeed
	h.wantState(next, run.ActionRunning)
	h.advance(time.Second)
	h.exit(waiting, 1)
	h.wantState(next, run.ActionRunning)
	forget()
	h.wantState(next, run.Running)
	if _, err := h.service.Jobs.Clear(h.Context(), client, "other", change.Precondition{}); fault.Of(err) == nil || fault.Of(err).Code != fault.NotFound {
		t.Errorf("got %v for an unknown job, want NOT_FOUND", err)
	}
}

// TestConstraintsAreEvaluatedAfterTheHook ends the previous run during the hook call of a run.
func TestConstraintsAreEvaluatedAfterTheHook(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		asking func(h *fixture)
		want   string
	}{
		"the previous run succeeds": {func(h *fixture) { h.exit("a", 0) }, ""},
		"the previous run fails":    {func(h *fixture) { h.exit("a", 1) }, "run a failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, func(c *config) { c.Policy.Retry.MaxAttempts = 1 })
			h.hooks.answers = map[string]spec.HookAnswer{"": {Allowed: true}}
			h.runJob("a", spec.Constraints{}, spec.Actions{})
			h.wantState("a", run.Running)
			h.hooks.asking = func() { row.asking(h) }
			h.runJob("b", spec.Constraints{RequirePreviousSuccess: true, PreRunHook: &spec.Hook{}}, spec.Actions{})
			got := ""
			for _, v := range h.record("b").Violations {
				got += v.Message
			}
			if !strings.Contains(got, row.want) || (got == "") != (row.want == "") {
				t.Errorf("got violations %q, want %q", got, row.want)
			}
		})
	}
}

// TestWindowClosesWhileTheHookIsAsked lets the catchUpWindow of a run pass during its hook
// call.
func TestWindowClosesWhileTheHookIsAsked(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.hooks.answers = map[string]spec.HookAnswer{"https://example.org/hook": {Allowed: true}}
	ref := h.createJob("hourly", "schedule: \"@every 1h\"\nconstraints: {catchUpWindow: 10s, preRunHook: {url: \"https://example.org/hook\"}}\n")
	h.hooks.asking = func() { h.clock.to(h.clock.now.Add(20 * time.Second)) }
	h.wake(ref)
	h.wantRuns(ref, "1h0m0s schedule Completed")
}

// TestPreviousRunWasPlannedAhead cancels a run that was planned ahead. Many runs are created
// after it and run before its time. It is the previous run of the first one after its time, also
// when a newer run has ended meanwhile.
func TestPreviousRunWasPlannedAhead(t *testing.T) {
	t.Parallel()
	h := setup(t, manyMachines)
	ref := h.createJob("nightly", limited("requirePreviousSuccess: true", "type: wait"))
	planned, _, err := h.service.Jobs.RunJob(t.Context(), jobs.RunRequest{Identity: client, JobID: ref.ID, ScheduledAt: h.clock.now.Add(time.Hour)})
	h.ok(err)
	for i := range 20 {
		h.advance(time.Second)
		id := h.requested(ref, spec.Override{})
		h.wantState(id, run.Running)
		h.exit(id, 0)
		h.wantState(id, run.Completed)
		if i == 0 {
			h.cancel(planned.ID)
		}
	}
	h.advance(2 * time.Hour)
	next := h.requested(ref, spec.Override{})
	h.advance(time.Second)
	newer := h.requested(ref, spec.Override{})
	h.wantState(next, run.ActionRunning)
	h.cancel(newer)
	h.advance(10 * time.Minute)
	h.wantState(next, run.ActionRunning)
}
