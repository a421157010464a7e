package runs_test

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/sweep"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// ended reports the end of an execution, as EventBridge does.
func (h *fixture) ended(task string, start int) error {
	h.Helper()
	ref := h.record(task).Ref()
	input, err := json.Marshal(ref)
	h.ok(err)
	event, err := json.Marshal(sweep.Input{
		DetailType: "Step Functions Execution Status Change",
		Detail: sweep.Change{
			Name: run.ExecutionName(ref, start), Status: port.ExecutionFailed, Input: string(input),
		},
	})
	h.ok(err)
	_, err = sweep.Handler(h.service.Sweeper, sweep.NoSensors{})(h.Context(), event)
	return err
}

// TestEndedExecutionIsReplacedAtOnce fails the execution in the one state without
// a Catch, and reports its end before a sweep is due.
//
// Rule 15 of shared/README.md.
func TestEndedExecutionIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	for name, test := range lostExecutions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, task := test.begin(t)
			for start := range 2 {
				for range 3 { // EventBridge delivers at least once
					h.ok(h.ended(task, start+1))
				}
				h.step()
			}
			h.sweep() // destroys the machine of an orphaned run
			r := h.wantState(task, test.state)
			h.wantEvents(task, test.events)
			if r.Execution.Start != 2 || h.runner.live() != 0 {
				t.Errorf("got start %d and %d live machines, want 2 and 0", r.Execution.Start, h.runner.live())
			}
			if waited := h.clock.now.Sub(epoch); waited > time.Minute {
				t.Errorf("got the end after %v, want at most 1m", waited)
			}
		})
	}
}

// TestRepeatedEndRestartsOnce reports the same end many times concurrently.
//
// Rule 15 of shared/README.md.
func TestRepeatedEndRestartsOnce(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.post()
	h.fail[run.StepTerminating] = []string{"Boom"}
	h.ok(h.report(h.runner.last(), success()))
	h.step()
	h.wantState(task, run.Terminating)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if err := h.ended(task, 1); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	h.step()
	h.wantEvents(task, "attempt_ended execution_restarted completed")
}

// TestExpectedEndIsIgnored reports the end of a run that has ended, of a replaced
// execution and of an unknown run.
func TestExpectedEndIsIgnored(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.post()
	before := h.eventsOf(task)
	if err := h.ended(task, 1); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v for a running execution, want %s", err, fault.Unavailable)
	}
	h.ok(h.ended(task, 7))
	h.ok(h.service.ExecutionEnded(h.Context(), run.Ref{Tenant: client.Tenant, ID: "unknown"}, "unknown"))
	if events := h.eventsOf(task); events != before {
		t.Errorf("got events %q, want %q", events, before)
	}
	h.ok(h.report(h.runner.last(), success()))
	h.advance(time.Minute)
	r := h.wantState(task, run.Completed)
	if x := h.execution(task, 1); x.Status != port.ExecutionSucceeded {
		t.Errorf("got execution %+v, want %s", x, port.ExecutionSucceeded)
	}
	h.ok(h.ended(task, 1))
	if after := h.record(task); after.Version != r.Version {
		t.Errorf("got version %d, want %d", after.Version, r.Version)
	}
}
