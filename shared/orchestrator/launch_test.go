package orchestrator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// TestConcurrentLaunchesKeepOneMachine commits the machine of a second launch
// while the first waits for its answer.
//
// Rule 5 of shared/README.md.
func TestConcurrentLaunchesKeepOneMachine(t *testing.T) {
	t.Parallel()
	h := setup(t)
	var in orchestrator.StepInput
	h.before[run.StepContainerCreating] = func(same orchestrator.StepInput) { in = same }
	h.runner.during = func(*machine) error { return h.service.Launch(h.Context(), in) }
	task := h.post()
	r := h.wantState(task, run.Running)
	if len(h.runner.made) != 2 || r.Attempt.MachineID != "app/m2" || r.Attempt.Number != 1 {
		t.Fatalf("%d machines, and %s is heard", len(h.runner.made), r.Attempt.MachineID)
	}
	if h.runner.made[0].Phase != port.MachineGone || h.runner.live() != 1 {
		t.Errorf("the other machine is %s", h.runner.made[0].Phase)
	}
}

// TestLateMachineIsDiscarded returns from a launch after the run has ended: the
// machine is destroyed and its uploads removed.
//
// Rule 5 of shared/README.md.
func TestLateMachineIsDiscarded(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := ""
	h.runner.during = func(m *machine) error {
		m.hidden = true
		_, err := h.service.Cancel(h.Context(), client, task, "")
		h.ok(err)
		_, err = h.service.Terminate(h.Context(), orchestrator.StepInput{
			Ref: h.record(task).Ref(), Step: run.StepTerminating, Execution: run.ExecutionName(h.record(task).Ref(), 1),
		})
		h.ok(err)
		h.outputs.shelves[port.Uploads][limit.OutputPrefix(task)+"late.xml"] = "<late/>"
		m.hidden = false
		return nil
	}
	task = h.accept()
	h.step()
	h.wantState(task, run.Cancelled)
	if h.runner.live() != 0 || len(h.outputs.shelves[port.Uploads]) != 0 {
		t.Errorf("%d machines live, uploads %v", h.runner.live(), h.outputs.shelves[port.Uploads])
	}
}

// TestFastWorkerReportsBeforeItsLaunch reports before the machine's id is
// committed.
//
// Rule 5 of shared/README.md.
func TestFastWorkerReportsBeforeItsLaunch(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runner.during = func(m *machine) error {
		m.Phase = port.MachineRunning
		return h.report(m, success())
	}
	task := h.post()
	r := h.wantState(task, run.Completed)
	if r.Attempt.MachineID != "app/m1" || h.runner.live() != 0 || r.Attempt.Number != 1 {
		t.Errorf("%d machines live; the attempt is %+v", h.runner.live(), r.Attempt)
	}
	h.wantEvents(task, "accepted admitted started attempt_ended machine_created completed")
}

// TestFastWorkerKeepsItsMachine starts before the machine's id is committed: the
// launch loses the race and commits again.
//
// Rule 5 of shared/README.md.
func TestFastWorkerKeepsItsMachine(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runner.during = func(m *machine) error {
		m.Phase = port.MachineRunning
		return h.worker(m).started(false)
	}
	task := h.post()
	r := h.wantState(task, run.Running)
	if r.Attempt.MachineID != "app/m1" || h.runner.live() != 1 || len(h.runner.made) != 1 {
		t.Errorf("%d of %d machines live, and %q is heard", h.runner.live(), len(h.runner.made), r.Attempt.MachineID)
	}
	h.ok(h.report(h.runner.last(), success()))
	h.step()
	h.wantState(task, run.Completed)
}

// TestFastWorkerIsSettledBeforeItsLaunch settles the run while the launch waits
// for its answer: the machine is found in the list.
//
// Rule 5 of shared/README.md.
func TestFastWorkerIsSettledBeforeItsLaunch(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runner.during = func(m *machine) error {
		m.Phase = port.MachineRunning
		h.ok(h.report(m, success()))
		ref := run.Ref{Tenant: m.Owner.Tenant, ID: m.Owner.RunID}
		_, err := h.service.Terminate(h.Context(), orchestrator.StepInput{
			Ref: ref, Step: run.StepTerminating, Execution: run.ExecutionName(ref, 1),
		})
		if m.Phase != port.MachineGone {
			t.Errorf("the run has ended, and its machine is %s", m.Phase)
		}
		return err
	}
	task := h.post()
	h.wantState(task, run.Completed)
	if h.runner.live() != 0 || len(h.runner.made) != 1 {
		t.Errorf("%d of %d machines live", h.runner.live(), len(h.runner.made))
	}
}

// TestMachineOfAFastWorkerIsAwaited commits the id of an unlisted machine while
// the run is settled.
//
// Rule 5 of shared/README.md.
func TestMachineOfAFastWorkerIsAwaited(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runner.during = func(m *machine) error {
		m.Phase, m.hidden = port.MachineRunning, true
		h.ok(h.report(m, success()))
		ref := run.Ref{Tenant: m.Owner.Tenant, ID: m.Owner.RunID}
		h.clock.during = func() {
			r, err := h.store.Load(h.Context(), ref)
			h.ok(err)
			d, err := run.Decide(r, run.MachineCreated{Attempt: 1, MachineID: m.ID}, h.clock.now)
			h.ok(err)
			h.ok(h.store.Commit(h.Context(), port.WriteOf(d)))
			m.hidden = false
		}
		_, err := h.service.Terminate(h.Context(), orchestrator.StepInput{
			Ref: ref, Step: run.StepTerminating, Execution: run.ExecutionName(ref, 1),
		})
		if m.Phase != port.MachineGone {
			t.Errorf("the run has ended, and its machine is %s", m.Phase)
		}
		return err
	}
	h.wantState(h.post(), run.Completed)
}

// TestSweepCommitsAnUnknownMachine loses the answer to a launch.
//
// Rule 5 of shared/README.md.
func TestSweepCommitsAnUnknownMachine(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runner.during = func(m *machine) error {
		m.Phase = port.MachineRunning
		return fault.New(fault.Unavailable, "the answer was lost")
	}
	task := h.post()
	if r := h.wantState(task, run.ContainerCreating); r.Attempt.MachineID != "" {
		t.Fatalf("it knows %s", r.Attempt.MachineID)
	}
	h.sweep()
	if r := h.wantState(task, run.Running); r.Attempt.MachineID != "app/m1" || r.Attempt.Number != 1 {
		t.Errorf("the attempt is %+v", r.Attempt)
	}
	h.pass(time.Minute)
	h.ok(h.report(h.runner.last(), success()))
	h.step()
	h.wantState(task, run.Completed)
	if len(h.runner.made) != 1 {
		t.Errorf("%d machines were made", len(h.runner.made))
	}
}

// TestLaunchOutlivesItsCaller ends the caller's context during a launch, as the
// stop of a local process does.
//
// Rule 5 of shared/README.md.
func TestLaunchOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	h := setup(t)
	called, end := context.WithCancel(t.Context())
	h.runner.during = func(*machine) error { end(); return nil }
	task := ""
	h.before[run.StepContainerCreating] = func(in orchestrator.StepInput) {
		_ = h.service.Launch(called, in) // its caller is gone
		if r := h.record(task); r.Attempt.MachineID != "app/m1" {
			t.Errorf("the call has ended, and the machine that it made is not known: %+v", r.Attempt)
		}
	}
	task = h.accept()
	h.step()
	if h.wantState(task, run.Running); len(h.runner.made) != 1 {
		t.Errorf("%d machines were made", len(h.runner.made))
	}
}

// TestNextAttemptAwaitsTheMachinesEnd keeps a machine that cannot be destroyed:
// the next attempt waits for ten minutes.
//
// Rule 5 of shared/README.md.
func TestNextAttemptAwaitsTheMachinesEnd(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *orchestrator.Config) { c.Policy.TimeLimit = 2 * time.Minute })
	h.runner.clinging = true
	task := h.post()
	h.pass(2*time.Minute + 2*time.Second)
	h.wantState(task, run.Terminating)
	h.pass(9 * time.Minute)
	h.wantState(task, run.Terminating)
	h.wantEvents(task, "attempt_ended:RUN_TIMEOUT")
	h.runner.clinging = false
	h.pass(70 * time.Second)
	if r := h.wantState(task, run.Running); r.Attempt.Number != 2 || len(h.runner.made) != 2 {
		t.Errorf("the attempt is %+v of %d machines", r.Attempt, len(h.runner.made))
	}
	h.runner.clinging = true
	h.pass(2*time.Minute + 2*time.Second)
	h.wantState(task, run.Terminating)
	h.pass(12 * time.Minute)
	if r := h.wantState(task, run.Failed); r.Fault.Code != fault.RunTimeout {
		t.Errorf("it failed with %+v", r.Fault)
	}
	h.runner.clinging = false
	h.sweep()
	if h.runner.live() != 0 {
		t.Errorf("%d machines live", h.runner.live())
	}
}

// TestUnreachableRunnerDelaysAReportTenMinutes reports while the machine cannot be
// reached.
//
// Rule 5 of shared/README.md.
func TestUnreachableRunnerDelaysAReportTenMinutes(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.post()
	h.runner.silent = true
	h.ok(h.report(h.runner.made[0], contract.Callback{Status: contract.StatusSuccess}))
	h.pass(9 * time.Minute)
	h.wantState(task, run.Terminating)
	h.pass(3 * time.Minute)
	h.wantState(task, run.Completed)
}

// TestSweepDestroysOtherMachines adds a second machine of an attempt.
//
// Rule 5 of shared/README.md.
func TestSweepDestroysOtherMachines(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runner.during = func(m *machine) error {
		m.Phase, m.hidden = port.MachineRunning, true
		return fault.New(fault.Unavailable, "the answer was lost")
	}
	task := h.post()
	h.pass(3 * time.Second)
	if r := h.wantState(task, run.Running); r.Attempt.MachineID != "app/m2" || h.runner.live() != 2 {
		t.Fatalf("%s is heard, %d machines live", r.Attempt.MachineID, h.runner.live())
	}
	first := h.runner.made[0]
	first.hidden = false
	h.sweep()
	if first.Phase != port.MachineGone || h.runner.live() != 1 {
		t.Errorf("it is %s, %d machines live", first.Phase, h.runner.live())
	}
	h.wantState(task, run.Running)
}

// TestAbsenceProvesNothing hides a machine from lists and inspections: that is its
// end after the start limit only.
//
// Rule 7 of shared/README.md.
func TestAbsenceProvesNothing(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runner.during = func(m *machine) error { m.hidden = true; return nil }
	task := h.post()
	h.sweep()
	h.wantState(task, run.ContainerCreating)
	h.runner.last().hidden = false
	h.sweep()
	h.pass(time.Second)
	h.runner.last().Phase = port.MachineRunning
	h.sweep()
	h.wantState(task, run.Running)
	h.runner.last().hidden = true
	h.sweep()
	h.wantState(task, run.Running)
	h.pass(time.Minute)
	h.sweep()
	h.wantState(task, run.Retrying)
	h.wantEvents(task, "attempt_ended:WORKER_LOST retry_scheduled:WORKER_LOST")
}

// TestTerminateAwaitsAHiddenMachine reports from a machine that the platform does
// not show yet: it is awaited until it is shown or the start limit is over.
//
// Rule 7 of shared/README.md.
func TestTerminateAwaitsAHiddenMachine(t *testing.T) {
	t.Parallel()
	for _, shown := range []bool{true, false} {
		t.Run(fmt.Sprint("shown later: ", shown), func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			task := h.post()
			m := h.runner.last()
			m.hidden = true
			h.ok(h.report(m, contract.Callback{Status: contract.StatusError, Error: "it says"}))
			h.pass(20 * time.Second)
			h.wantState(task, run.Terminating)
			m.hidden = !shown
			h.pass(40 * time.Second)
			h.pass(time.Minute) // Step Functions' own backoff
			h.wantState(task, run.Failed)
			if shown && m.Phase != port.MachineGone {
				t.Errorf("the run has ended, and its machine is %s", m.Phase)
			}
		})
	}
}

// TestSilentWorkerKeepsItsTimeLimit runs a worker without heartbeats to its limit,
// and detects the end of its machine by a sweep.
//
// Rule 7 of shared/README.md.
func TestSilentWorkerKeepsItsTimeLimit(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.post()
	h.pass(9 * time.Minute)
	h.sweep()
	h.wantState(task, run.Running)
	h.wantEvents(task, "started heartbeat_exempted")
	h.runner.last().ends(3)
	h.sweep()
	if r := h.wantState(task, run.Retrying); r.Fault.Code != fault.WorkerLost || r.Spent.Attempts != 1 {
		t.Errorf("it waits for its next attempt after %+v", r.Fault)
	}
	h.pass(3 * time.Second)
	h.wantState(task, run.Running)
	h.pass(10*time.Minute + 2*time.Second)
	if r := h.wantState(task, run.Failed); r.Fault.Code != fault.RunTimeout || h.runner.live() != 0 {
		t.Errorf("it failed with %+v, %d machines live", r.Fault, h.runner.live())
	}
}
