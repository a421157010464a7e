package runs_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/statemachines"
)

// many returns an error for each of the next 1000 calls of a step's function.
func many(name string) []string { return slices.Repeat([]string{name}, 1000) }

// lostExecution is a run whose execution fails a number of times in the one state
// without a Catch, with its final state and events.
type lostExecution struct {
	failures int
	state    run.State
	events   string
}

func lostExecutions() map[string]lostExecution {
	return map[string]lostExecution{
		"once":  {1, run.Completed, "attempt_ended execution_restarted completed"},
		"twice": {2, run.Orphaned, "attempt_ended execution_restarted orphaned:EXECUTION_LOST"},
	}
}

// begin runs until the first failure.
func (l lostExecution) begin(t *testing.T) (h *fixture, task string) {
	t.Helper()
	h = setup(t)
	task = h.post()
	h.fail[run.StepTerminating] = many("Boom")[:l.failures]
	h.ok(h.report(h.runner.last(), success()))
	h.step()
	return h, task
}

// TestExecutionIsRestartedOnce fails the execution in the one state without a
// Catch: it is restarted once, then the run is Orphaned and its machine destroyed.
//
// Rule 15 of shared/README.md.
func TestExecutionIsRestartedOnce(t *testing.T) {
	t.Parallel()
	for name, test := range lostExecutions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, task := test.begin(t)
			h.wantState(task, run.Terminating)
			if x := h.execution(task, 1); x.Status != port.ExecutionFailed || x.Error != "Boom" {
				t.Errorf("got execution %+v, want %s with Boom", x, port.ExecutionFailed)
			}
			for range 3 {
				h.advance(5*time.Minute + time.Second)
				h.sweep()
			}
			r := h.wantState(task, test.state)
			h.wantEvents(task, test.events)
			if r.Execution.Start != 2 || h.runner.live() != 0 {
				t.Errorf("got start %d and %d live machines, want 2 and 0", r.Execution.Start, h.runner.live())
			}
			pools, err := h.store.Pools(h.Context())
			if err != nil || len(pools) != 0 {
				t.Errorf("got pools %+v (%v), want no leases", pools, err)
			}
			h.wantNothingDue(task)
		})
	}
}

// TestUploadsOfAnOrphanAreCleared orphans a run whose output was accepted while no deletion
// succeeds: a sweep deletes its objects later.
func TestUploadsOfAnOrphanAreCleared(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.post()
	h.fail[run.StepTerminating] = many("Boom")[:2]
	h.ok(h.report(h.runner.last(), h.upload(h.runner.last(), "<mods/>", 7)))
	h.step()
	objects := h.outputs.buckets
	maps.Copy(objects[port.Accepted], objects[port.Uploads]) // accepted, and the commit was lost
	h.outputs.lost = 1000
	for range 3 {
		h.advance(5*time.Minute + time.Second)
		_ = h.service.Sweep(h.Context(), 0)
	}
	r := h.wantState(task, run.Orphaned)
	if len(objects[port.Accepted]) != 1 || !r.BytesLeft() || !r.PurgeAt().IsZero() {
		t.Errorf("got objects %v, bytes left %t and a purge at %s, want an object that delays the purge", objects, r.BytesLeft(), r.PurgeAt())
	}
	h.outputs.lost = 0
	h.advance(time.Hour)
	h.sweep()
	r = h.record(task)
	if len(objects[port.Uploads])+len(objects[port.Accepted]) != 0 || r.BytesLeft() || !r.PurgeAt().Equal(r.ExpiresAt) {
		t.Errorf("got objects %v, bytes left %t and a purge at %s, want none and the purge of the record", objects, r.BytesLeft(), r.PurgeAt())
	}
}

// TestReplacedExecutionDoesNothing invokes the functions of a replaced execution.
//
// Rule 15 of shared/README.md.
func TestReplacedExecutionDoesNothing(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.post()
	ref := h.record(task).Ref()
	h.ok(h.engine.Stop(h.Context(), run.ExecutionName(ref, 1), "by caller"))
	h.advance(12 * time.Minute)
	h.sweep()
	before := h.record(task)
	if before.Execution.Start != 2 {
		t.Fatalf("got start %d, want 2", before.Execution.Start)
	}
	in := runs.StepInput{Ref: ref, Execution: run.ExecutionName(ref, 1)}
	for step, do := range map[run.Step]func() (run.Route, error){
		run.StepPending:     func() (run.Route, error) { return h.service.Admit(h.Context(), in) },
		run.StepReconciling: func() (run.Route, error) { return h.service.Reconcile(h.Context(), in) },
		run.StepTerminating: func() (run.Route, error) { return h.service.Terminate(h.Context(), in) },
	} {
		if route, err := do(); err != nil || route.Next != run.StepCancelled {
			t.Errorf("%s: got route %s (%v), want %s", step, route.Next, err, run.StepCancelled)
		}
	}
	if after := h.record(task); after.Version != before.Version {
		t.Errorf("got version %d, want %d", after.Version, before.Version)
	}
}

// TestUnexpectedFailureEndsTheRun fails each plain step with an unknown error.
//
// Rule 15 of shared/README.md.
func TestUnexpectedFailureEndsTheRun(t *testing.T) {
	t.Parallel()
	for step, begin := range map[run.Step]func(h *fixture) string{
		run.StepPending: (*fixture).post,
		run.StepConditionRunning: func(h *fixture) string {
			return h.startRun(func(r *run.Run) { r.Constraints = &spec.Constraints{RequirePreviousSuccess: true} })
		},
		run.StepReconciling: func(h *fixture) string {
			task := h.post()
			h.advance(91 * time.Second)
			return task
		},
	} {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			h := setup(t, func(c *runs.Config) { c.Policy.Retry.MaxAttempts = 1 })
			h.fail[step] = []string{"Boom"}
			task := begin(h)
			h.advance(time.Second)
			if r := h.wantState(task, run.Failed); r.Fault.Code != fault.Internal || !strings.Contains(r.Fault.Message, "Boom") {
				t.Errorf("got fault %+v, want %s with Boom", r.Fault, fault.Internal)
			}
			if h.runner.live() != 0 {
				t.Errorf("got %d live machines, want 0", h.runner.live())
			}
			h.wantExecutionEnded(task)
		})
	}
}

// TestTemporaryFailureIsRetried fails functions a few times: plain ones with
// TryAgain, waiting ones with any error.
func TestTemporaryFailureIsRetried(t *testing.T) {
	t.Parallel()
	for step, name := range map[run.Step]string{
		run.StepPending: "TryAgain", run.StepTerminating: "TryAgain", run.StepReconciling: "Lambda.TooManyRequestsException",
		run.StepContainerCreating: "Boom", run.StepRunning: "Boom",
	} {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			h.fail[step] = many(name)[:3]
			task := h.post()
			if step == run.StepReconciling {
				h.advance(91 * time.Second)
			}
			h.advance(20 * time.Second)
			h.wantState(task, run.Running)
			h.ok(h.report(h.runner.last(), success()))
			h.step()
			h.advance(20 * time.Second)
			if r := h.wantState(task, run.Completed); r.Attempt.Number != 1 || len(h.fail[step]) != 0 || len(h.runner.launched) != 1 {
				t.Errorf("got attempt %d, %d failures left and %d machines, want 1, 0 and 1", r.Attempt.Number, len(h.fail[step]), len(h.runner.launched))
			}
		})
	}
}

// TestStopFromOutsideIsNotCounted stops a machine from outside, and its worker
// reports CANCELLED: no attempt is counted. Without the stop, the attempt counts.
func TestStopFromOutsideIsNotCounted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		requested bool
		count     int
	}{"stopped from outside": {true, 0}, "not stopped": {false, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			task := h.post()
			m := h.runner.last()
			w := h.worker(m)
			h.ok(w.started(true))
			if test.requested {
				h.ok(h.runner.Stop(t.Context(), m.Machine, 0))
			}
			b := w.bearer()
			_, _, err := h.service.Completed(t.Context(), b, contract.TaskCompleted{Attempt: b.Attempt, WorkerID: w.id, Outcome: contract.OutcomeCancelled})
			h.ok(err)
			h.step()
			if r := h.wantState(task, run.Retrying); r.Spent.Attempts != test.count {
				t.Errorf("got %d spent attempts, want %d", r.Spent.Attempts, test.count)
			}
		})
	}
}

// TestWorkerSurvivesFailuresOfSortie fails every call of the step Running for eight
// minutes.
func TestWorkerSurvivesFailuresOfSortie(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.fail[run.StepRunning] = many("Lambda.ServiceException")
	task := h.post()
	h.advance(8 * time.Minute)
	h.wantState(task, run.Running)
	if calls := 1000 - len(h.fail[run.StepRunning]); calls > 20 {
		t.Errorf("got %d calls, want at most 20", calls)
	}
	h.fail[run.StepRunning] = nil
	h.advance(time.Minute)
	h.ok(h.report(h.runner.last(), success()))
	h.step()
	h.wantState(task, run.Completed)
}

// TestTerminalStateIsFinal repeats every call after the end.
//
// Rule 9 of shared/README.md.
func TestTerminalStateIsFinal(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.completed()
	before := h.record(task)
	in := runs.StepInput{Ref: before.Ref(), Execution: run.ExecutionName(before.Ref(), 1), Token: "old", Generation: 1}
	for name, again := range map[string]func() error{
		"admit":     func() error { _, err := h.service.Admit(h.Context(), in); return err },
		"launch":    func() error { in.Step = run.StepContainerCreating; return h.service.Launch(h.Context(), in) },
		"supervise": func() error { in.Step = run.StepRunning; return h.service.Supervise(h.Context(), in) },
		"stop":      func() error { in.Step = run.StepCancelling; return h.service.StopWorker(h.Context(), in) },
		"reconcile": func() error { _, err := h.service.Reconcile(h.Context(), in); return err },
		"terminate": func() error { _, err := h.service.Terminate(h.Context(), in); return err },
		"cancel":    func() error { _, err := h.service.Cancel(h.Context(), client, task, ""); return err },
		"sweep":     func() error { return h.service.Sweep(h.Context(), 24*time.Hour) },
	} {
		if err := again(); err != nil {
			t.Errorf("%s: got %v, want nil", name, err)
		}
	}
	h.advance(time.Hour)
	if after := h.record(task); after.Version != before.Version || len(h.runner.launched) != 1 || len(h.outputs.buckets[port.Accepted]) != 1 {
		t.Errorf("got version %d, %d machines and %d outputs, want %d, 1 and 1", after.Version, len(h.runner.launched), len(h.outputs.buckets[port.Accepted]), before.Version)
	}
}

// TestStateMachineCatchesEverything reads the definition: a plain Task retries TryAgain
// and sends other errors to Terminating, a token state has no Retry and sends
// every error to Reconciling, and only Terminating has no Catch.
func TestStateMachineCatchesEverything(t *testing.T) {
	t.Parallel()
	names := map[string]string{}
	for _, name := range statemachines.Functions() {
		names[name] = name
	}
	text, err := statemachines.Run(names)
	if err != nil {
		t.Fatal(err)
	}
	type rule struct {
		ErrorEquals     []string
		Next            string
		MaxDelaySeconds int
	}
	var file struct {
		States map[string]struct {
			Type, Resource string
			Retry, Catch   []rule
		}
	}
	if err := json.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	tasks := 0
	for name, state := range file.States {
		if state.Type != "Task" {
			continue
		}
		tasks++
		waits := strings.HasSuffix(state.Resource, ".waitForTaskToken")
		caught := ""
		if len(state.Catch) == 1 && slices.Equal(state.Catch[0].ErrorEquals, []string{"States.ALL"}) {
			caught = state.Catch[0].Next
		}
		want := "Terminating"
		switch {
		case waits:
			want = "Reconciling"
		case name == "Terminating":
			want = ""
		}
		if caught != want {
			t.Errorf("%s: got errors caught by %q, want %q", name, caught, want)
		}
		retries := len(state.Retry) == 1 && slices.Contains(state.Retry[0].ErrorEquals, "TryAgain") && state.Retry[0].MaxDelaySeconds == 60
		if retries == waits || waits && len(state.Retry) > 0 {
			t.Errorf("%s: got retry rules %+v, want one in a plain Task and no others", name, state.Retry)
		}
	}
	if tasks != 10 {
		t.Errorf("got %d Tasks, want 10", tasks)
	}
}

// TestWrappedTryAgainIsRetried changes the upload three times while it is being
// accepted.
func TestWrappedTryAgainIsRetried(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.post()
	key := limit.OutputPrefix(task) + "out.xml"
	body := h.upload(h.runner.last(), "<out/>", 6)
	changes := 0
	var change func()
	change = func() {
		if changes++; changes < 4 {
			h.outputs.buckets[port.Uploads][key] = strings.Repeat("x", 6-changes) + strings.Repeat("y", changes)
			h.outputs.after = change
		}
	}
	h.outputs.after = change
	h.ok(h.report(h.runner.last(), body))
	h.step()
	if r := h.wantState(task, run.Terminating); r.Spent.Attempts != 0 {
		t.Errorf("got %d spent attempts, want 0", r.Spent.Attempts)
	}
	h.advance(time.Minute)
	h.wantState(task, run.Completed)
	if err := (runs.TryAgain{Cause: port.ErrChanged}); !errors.Is(err, port.ErrChanged) {
		t.Errorf("got %v, want it to wrap %v", err, port.ErrChanged)
	}
}
