package runs_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestKilledWorkerIsACancelTimeout ends a worker's machine after a cancel request. It does not
// matter which component sees the end first, and when: the run is Failed if the worker was
// killed, and Cancelled if it ended by itself.
//
// Rule 12 of shared/README.md.
func TestKilledWorkerIsACancelTimeout(t *testing.T) {
	t.Parallel()
	killed := &port.Exit{Code: 137, Signal: 9, Requested: true}
	for name, exit := range map[string]struct {
		exit *port.Exit
		want run.State
	}{
		"killed by the platform":         {killed, run.Failed},
		"killed without a stop":          {&port.Exit{Code: 137, Signal: 9}, run.Failed},
		"killed by a slow clock":         {&port.Exit{Code: 137, Signal: 9, Requested: true, At: epoch.Add(-time.Hour)}, run.Failed},
		"killed for its memory":          {&port.Exit{Code: 137, Signal: 9, OOM: true, Requested: true}, run.Cancelled},
		"killed before the request":      {&port.Exit{Code: 137, Signal: 9, At: epoch.Add(-time.Second)}, run.Cancelled},
		"ended by SIGTERM":               {&port.Exit{Code: 143, Signal: 15, Requested: true}, run.Cancelled},
		"ended by itself":                {&port.Exit{Requested: true}, run.Cancelled},
		"ended by itself with code 137":  {&port.Exit{Code: 137, Requested: true}, run.Cancelled},
		"ended by itself with an error":  {&port.Exit{Code: 1}, run.Cancelled},
		"the platform lost how it ended": {nil, run.Cancelled},
	} {
		for path, see := range map[string]func(h *fixture, m *machine){
			"the sweep": func(h *fixture, m *machine) {
				m.Phase, m.Exit = port.MachineGone, exit.exit
				h.sweep()
			},
			"Reconciling": func(h *fixture, m *machine) {
				m.Phase, m.Exit = port.MachineGone, exit.exit
				h.advance(11 * time.Second)
			},
			"Reconciling, before the machine is gone": func(h *fixture, m *machine) {
				if m.Phase, m.Exit = port.MachineEnding, exit.exit; m.Exit == nil {
					m.Phase = port.MachineGone
				}
				h.advance(11 * time.Second)
			},
			"Terminating, after a failed inspection": func(h *fixture, m *machine) {
				if exit.exit == nil {
					m.Phase = port.MachineGone
					h.sweep()
				}
				m.hidden = true
				h.before[run.StepTerminating] = func(runs.StepInput) {
					m.hidden, m.Phase, m.Exit = false, port.MachineGone, exit.exit
				}
				h.advance(11 * time.Second)
			},
			"Terminating, after the sweep saw no exit": func(h *fixture, m *machine) {
				m.Phase, m.Exit = port.MachineGone, nil
				h.before[run.StepTerminating] = func(runs.StepInput) { m.Exit = exit.exit }
				h.clock.to(h.clock.now.Add(11 * time.Second))
				h.sweep()
			},
		} {
			t.Run(name+", seen by "+path, func(t *testing.T) {
				t.Parallel()
				h := setup(t)
				h.runner.ignoresSIGTERM = true
				task := h.post()
				h.cancel(task)
				h.step()
				see(h, h.runner.last())
				h.sweep()
				r := h.wantState(task, exit.want)
				want := map[run.State]fault.Code{run.Failed: fault.CancelTimeout, run.Cancelled: fault.Cancelled}[exit.want]
				if r.Fault.Code != want {
					t.Errorf("got fault %+v, want %s", r.Fault, want)
				}
				h.wantExecutionEnded(task)
				err := h.report(h.runner.last(), success())
				if late := exit.want == run.Failed; fault.Is(err, fault.TaskExpired) != late {
					t.Errorf("got %v for a late report, want it refused: %t", err, late)
				}
			})
		}
	}
}

// TestReportBeforeTheKillIsCancelled kills a worker that reported after a cancel
// request and did not exit: its report was acknowledged as CANCELLED.
//
// Rule 12 of shared/README.md.
func TestReportBeforeTheKillIsCancelled(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runner.ignoresSIGTERM = true
	task := h.post()
	m := h.runner.last()
	h.cancel(task)
	h.step()
	h.ok(h.report(m, contract.Callback{Status: contract.StatusError, Error: "cancelled"}))
	m.Phase, m.Exit = port.MachineGone, &port.Exit{Code: 137, Signal: 9, Requested: true}
	h.advance(11 * time.Second)
	h.wantState(task, run.Cancelled)
}

// TestAcknowledgedSuccessWinsOverCancel requests a cancel after a success was
// acknowledged: before its execution acts, while its output is verified, and while
// the verification is retried.
//
// Rule 12 of shared/README.md.
func TestAcknowledgedSuccessWinsOverCancel(t *testing.T) {
	t.Parallel()
	for name, cancelIn := range map[string]func(h *fixture, task string){
		"before the token of Running is completed": func(h *fixture, task string) { h.cancel(task) },
		"before Terminating": func(h *fixture, task string) {
			h.before[run.StepTerminating] = func(runs.StepInput) { h.cancel(task) }
		},
		"while its output is verified": func(h *fixture, task string) {
			h.outputs.after = func() { h.cancel(task) }
		},
		"while the verification is retried": func(h *fixture, task string) {
			h.outputs.lost = 1
			h.step()
			h.wantState(task, run.Terminating)
			h.cancel(task)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			task := h.post()
			m := h.runner.last()
			body := h.upload(m, "<out/>", 6)
			h.ok(h.report(m, body))
			cancelIn(h, task)
			h.advance(5 * time.Minute)
			h.sweep()
			r := h.wantState(task, run.Completed)
			if r.Output == nil || len(h.outputs.buckets[port.Accepted]) != 1 {
				t.Errorf("got output %+v and objects %v, want the accepted output", r.Output, h.outputs.buckets)
			}
			h.ok(h.report(m, body))
			if after := h.record(task); after.Attempt.Outcome != run.OutcomeSucceeded {
				t.Errorf("got outcome %s after a repeated report, want %s", after.Attempt.Outcome, run.OutcomeSucceeded)
			}
			if _, err := h.service.Output(h.Context(), client, task); err != nil {
				t.Errorf("got %v for the output, want it", err)
			}
		})
	}
}

// TestCancelledRunIsNotRetried requests a cancel after a success whose output is
// missing: the run ends without another attempt.
//
// Rule 12 of shared/README.md.
func TestCancelledRunIsNotRetried(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.post()
	body := h.upload(h.runner.last(), "<out/>", 6)
	clear(h.outputs.buckets[port.Uploads])
	h.ok(h.report(h.runner.last(), body))
	h.cancel(task)
	h.advance(time.Minute)
	h.wantState(task, run.Cancelled)
	if len(h.runner.launched) != 1 {
		t.Errorf("got %d machines launched, want 1", len(h.runner.launched))
	}
}
