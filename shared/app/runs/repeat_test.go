package runs_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestRepeatedCallLeavesTheNextAttempt repeats calls of an earlier attempt, as
// Step Functions may after a timeout.
//
// Rule 3 of shared/README.md.
func TestRepeatedCallLeavesTheNextAttempt(t *testing.T) {
	t.Parallel()
	h := setup(t)
	var reconciling, terminating runs.StepInput
	h.fail[run.StepRunning] = []string{"Lambda.Unknown"}
	h.before[run.StepReconciling] = func(in runs.StepInput) { reconciling = in }
	h.before[run.StepTerminating] = func(in runs.StepInput) { terminating = in }
	task := h.post()
	h.advance(5 * time.Second)
	h.wantState(task, run.Running)
	h.runner.last().exit(1)
	h.sweep()
	h.advance(5 * time.Second)
	before := h.wantState(task, run.Running)
	if before.Attempt.Number != 2 || reconciling.ID == "" || terminating.ID == "" {
		t.Fatalf("got attempt %d and inputs %+v and %+v, want attempt 2 and both inputs", before.Attempt.Number, reconciling, terminating)
	}
	for name, call := range map[string]func() (run.Route, error){
		"Reconciling": func() (run.Route, error) { return h.service.Reconcile(t.Context(), reconciling) },
		"Terminating": func() (run.Route, error) { return h.service.Terminate(t.Context(), terminating) },
	} {
		_, err := call()
		h.ok(err)
		if after := h.record(task); after.Version != before.Version {
			t.Errorf("%s: got version %d, want %d", name, after.Version, before.Version)
		}
	}
	h.ok(h.report(h.runner.last(), success()))
	h.step()
	h.wantState(task, run.Completed)
}

// TestReportIsAcceptedOnce repeats and contradicts an accepted completion before,
// at and after the end of its run. Nothing is written.
//
// Rule 10 of shared/README.md.
func TestReportIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]func(h *fixture){
		"at once":            func(*fixture) {},
		"after the end":      func(h *fixture) { h.step() },
		"after half an hour": func(h *fixture) { h.step(); h.advance(30 * time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			task := h.post()
			w := h.worker(h.runner.last())
			h.ok(w.started(false))
			b := w.bearer()
			completion := contract.TaskCompleted{Attempt: 1, WorkerID: w.id, Outcome: contract.OutcomeSucceeded, Metrics: json.RawMessage(`{"cpuTimeMs":1}`)}
			final, _, err := h.service.Completed(t.Context(), b, completion)
			h.ok(err)
			later(h)
			before, events := h.record(task), h.eventsOf(task)

			completion.Metrics = json.RawMessage(`{"cpuTimeMs":2}`) // metrics are not compared
			if again, _, err := h.service.Completed(t.Context(), b, completion); err != nil || again != final || final != run.OutcomeSucceeded {
				t.Errorf("got outcome %s, then %s (%v), want %s twice", final, again, err, run.OutcomeSucceeded)
			}
			for code, change := range map[fault.Code]func(*contract.TaskCompleted){
				fault.TaskAlreadyTerminal: func(c *contract.TaskCompleted) { c.Outcome = contract.OutcomeCancelled },
				fault.WorkerMismatch: func(c *contract.TaskCompleted) {
					c.WorkerID, c.Outcome = "another", contract.OutcomeCancelled
				},
				fault.AttemptMismatch: func(c *contract.TaskCompleted) { c.Attempt = 2 },
			} {
				other := completion
				change(&other)
				_, _, err := h.service.Completed(t.Context(), b, other)
				refusal, ok := errors.AsType[*runs.Refusal](err)
				if !ok || refusal.Fault.Code != code {
					t.Errorf("got %v for %+v, want %s", err, other, code)
				} else if code == fault.TaskAlreadyTerminal && refusal.State != contract.OutcomeSucceeded {
					t.Errorf("got state %q in the refusal, want %q", refusal.State, contract.OutcomeSucceeded)
				}
			}
			if _, err := w.heartbeat(); !fault.Is(err, fault.TaskExpired) {
				t.Errorf("got %v for a heartbeat after the report, want %s", err, fault.TaskExpired)
			}
			if err := w.started(false); !fault.Is(err, fault.TaskAlreadyTerminal) {
				t.Errorf("got %v for a start after the report, want %s", err, fault.TaskAlreadyTerminal)
			}
			h.equal(before, h.record(task))
			h.equal(events, h.eventsOf(task))
		})
	}
}

// TestReconcileAwaitsAHiddenMachine reconciles a start whose machine the platform
// does not show yet.
//
// Rule 7 of shared/README.md.
func TestReconcileAwaitsAHiddenMachine(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runner.stuck = true
	task := h.post()
	h.wantState(task, run.ContainerCreating)
	h.runner.last().hidden = true
	_, err := h.service.Reconcile(t.Context(), h.input(task, run.StepReconciling))
	h.ok(err)
	if r := h.wantState(task, run.ContainerCreating); r.Attempt.Number != 1 || !r.Attempt.Machine.Known() {
		t.Errorf("got attempt %+v, want attempt 1 with a machine", r.Attempt)
	}
}
