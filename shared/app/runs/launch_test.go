package runs_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestConcurrentLaunchesKeepOneMachine commits the machine of a second launch
// while the first waits for its answer.
//
// Rule 5 of shared/README.md.
func TestConcurrentLaunchesKeepOneMachine(t *testing.T) {
	t.Parallel()
	h := setup(t)
	var in runs.StepInput
	h.before[run.StepContainerCreating] = func(same runs.StepInput) { in = same }
	h.runner.during = func(*machine) error { return h.service.Launch(h.Context(), in) }
	task := h.post()
	r := h.wantState(task, run.Running)
	if len(h.runner.launched) != 2 || r.Attempt.Machine.ID != "m2" || r.Attempt.Number != 1 {
		t.Fatalf("got %d machines and attempt %+v, want 2 and attempt 1 on m2", len(h.runner.launched), r.Attempt)
	}
	if h.runner.launched[0].Phase != port.MachineGone || h.runner.live() != 1 {
		t.Errorf("got phase %s and %d live machines, want %s and 1", h.runner.launched[0].Phase, h.runner.live(), port.MachineGone)
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
		h.clock.to(h.clock.now.Add(2 * time.Minute)) // longer than a create call may take
		_, err = h.service.Terminate(h.Context(), runs.StepInput{
			Ref: h.record(task).Ref(), Step: run.StepTerminating, Execution: run.ExecutionName(h.record(task).Ref(), 1),
		})
		h.ok(err)
		h.outputs.buckets[port.Uploads][limit.OutputPrefix(task)+"late.xml"] = "<late/>"
		m.hidden = false
		return nil
	}
	task = h.accept()
	h.step()
	h.wantState(task, run.Cancelled)
	if h.runner.live() != 0 || len(h.outputs.buckets[port.Uploads]) != 0 {
		t.Errorf("got %d live machines and uploads %v, want 0 and an empty bucket", h.runner.live(), h.outputs.buckets[port.Uploads])
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
	if r.Attempt.Machine.ID != "m1" || h.runner.live() != 0 || r.Attempt.Number != 1 {
		t.Errorf("got %d live machines and attempt %+v, want 0 and attempt 1 on m1", h.runner.live(), r.Attempt)
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
	if r.Attempt.Machine.ID != "m1" || h.runner.live() != 1 || len(h.runner.launched) != 1 {
		t.Errorf("got %d of %d machines live and the attempt on %v, want 1 of 1 on m1", h.runner.live(), len(h.runner.launched), r.Attempt.Machine)
	}
	h.ok(h.report(h.runner.last(), success()))
	h.step()
	h.wantState(task, run.Completed)
}

// TestFastWorkerIsSettledBeforeItsLaunch settles the run while the launch waits for the
// platform: the machine is found in the list.
//
// Rule 5 of shared/README.md.
func TestFastWorkerIsSettledBeforeItsLaunch(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runner.during = func(m *machine) error {
		m.Phase = port.MachineRunning
		h.ok(h.report(m, success()))
		ref := run.Ref{Tenant: m.Owner.Tenant, ID: m.Owner.RunID}
		_, err := h.service.Terminate(h.Context(), runs.StepInput{
			Ref: ref, Step: run.StepTerminating, Execution: run.ExecutionName(ref, 1),
		})
		if m.Phase != port.MachineGone {
			t.Errorf("got machine %s after the end of the run, want %s", m.Phase, port.MachineGone)
		}
		return err
	}
	task := h.post()
	h.wantState(task, run.Completed)
	if h.runner.live() != 0 || len(h.runner.launched) != 1 {
		t.Errorf("got %d of %d machines live, want 0 of 1", h.runner.live(), len(h.runner.launched))
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
			d, err := run.Decide(r, run.MachineCreated{Attempt: 1, Machine: m.Machine}, h.clock.now)
			h.ok(err)
			h.ok(h.store.Commit(h.Context(), port.WriteOf(d)))
			m.hidden = false
		}
		_, err := h.service.Terminate(h.Context(), runs.StepInput{
			Ref: ref, Step: run.StepTerminating, Execution: run.ExecutionName(ref, 1),
		})
		if m.Phase != port.MachineGone {
			t.Errorf("got machine %s after the end of the run, want %s", m.Phase, port.MachineGone)
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
	if r := h.wantState(task, run.ContainerCreating); r.Attempt.Machine.Known() {
		t.Fatalf("got machine %v, want none", r.Attempt.Machine)
	}
	h.sweep()
	if r := h.wantState(task, run.Running); r.Attempt.Machine.ID != "m1" || r.Attempt.Number != 1 {
		t.Errorf("got attempt %+v, want attempt 1 on m1", r.Attempt)
	}
	h.advance(time.Minute)
	h.ok(h.report(h.runner.last(), success()))
	h.step()
	h.wantState(task, run.Completed)
	if len(h.runner.launched) != 1 {
		t.Errorf("got %d machines launched, want 1", len(h.runner.launched))
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
	h.before[run.StepContainerCreating] = func(in runs.StepInput) {
		_ = h.service.Launch(called, in) // fails with the cancelled context
		if r := h.record(task); r.Attempt.Machine.ID != "m1" {
			t.Errorf("got attempt %+v after the launch, want it on m1", r.Attempt)
		}
	}
	task = h.accept()
	h.step()
	if h.wantState(task, run.Running); len(h.runner.launched) != 1 {
		t.Errorf("got %d machines launched, want 1", len(h.runner.launched))
	}
}

// TestNextAttemptAwaitsTheMachinesEnd keeps a machine that cannot be destroyed:
// the next attempt waits up to ten minutes.
//
// Rule 5 of shared/README.md.
func TestNextAttemptAwaitsTheMachinesEnd(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *runs.Config) { c.Policy.TimeLimit = 2 * time.Minute })
	h.runner.indestructible = true
	task := h.post()
	h.advance(2*time.Minute + 2*time.Second)
	h.wantState(task, run.Terminating)
	h.advance(9 * time.Minute)
	h.wantState(task, run.Terminating)
	h.wantEvents(task, "attempt_ended:RUN_TIMEOUT")
	h.runner.indestructible = false
	h.advance(70 * time.Second)
	if r := h.wantState(task, run.Running); r.Attempt.Number != 2 || len(h.runner.launched) != 2 {
		t.Errorf("got attempt %+v and %d machines, want attempt 2 and 2", r.Attempt, len(h.runner.launched))
	}
	h.runner.indestructible = true
	h.advance(2*time.Minute + 2*time.Second)
	h.wantState(task, run.Terminating)
	h.advance(12 * time.Minute)
	if r := h.wantState(task, run.Failed); r.Fault.Code != fault.RunTimeout {
		t.Errorf("got fault %+v, want %s", r.Fault, fault.RunTimeout)
	}
	h.runner.indestructible = false
	h.sweep()
	if h.runner.live() != 0 {
		t.Errorf("got %d live machines, want 0", h.runner.live())
	}
}

// TestMachineThatSortieDestroysWasNotStoppedFromOutside destroys the machine of a worker
// that has stopped by itself. The machine ends late, so that the call that sees it gone is
// not the one that has destroyed it.
func TestMachineThatSortieDestroysWasNotStoppedFromOutside(t *testing.T) {
	t.Parallel()
	h := liveness(t)
	h.runner.indestructible = true
	task := h.post()
	m := h.runner.last()
	w := h.worker(m)
	h.ok(w.started(false))
	_, _, err := h.service.Completed(t.Context(), w.bearer(), contract.TaskCompleted{
		Attempt: 1, WorkerID: w.id, Outcome: contract.OutcomeCancelled,
	})
	h.ok(err)
	h.step()
	h.wantState(task, run.Terminating)
	m.Phase, m.Exit = port.MachineGone, &port.Exit{Code: 137, Signal: 9, Requested: true, At: h.clock.now}
	h.advance(time.Minute)
	h.wantEvents(task, "retry_scheduled:WORKER_STOPPED")
}

// TestUnreachableRunnerDelaysAReportTenMinutes reports while the machine cannot be
// reached.
//
// Rule 5 of shared/README.md.
func TestUnreachableRunnerDelaysAReportTenMinutes(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.post()
	h.runner.unreachable = true
	h.ok(h.report(h.runner.launched[0], contract.Callback{Status: contract.StatusSuccess}))
	h.advance(9 * time.Minute)
	h.wantState(task, run.Terminating)
	h.advance(3 * time.Minute)
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
	h.advance(3 * time.Second)
	if r := h.wantState(task, run.Running); r.Attempt.Machine.ID != "m2" || h.runner.live() != 2 {
		t.Fatalf("got the attempt on %v and %d live machines, want m2 and 2", r.Attempt.Machine, h.runner.live())
	}
	first := h.runner.launched[0]
	first.hidden = false
	h.sweep()
	if first.Phase != port.MachineGone || h.runner.live() != 1 {
		t.Errorf("got phase %s and %d live machines, want %s and 1", first.Phase, h.runner.live(), port.MachineGone)
	}
	h.wantState(task, run.Running)
}

// TestHiddenMachineEndsAtTheStartLimit hides a machine from lists and inspections:
// it counts as ended only after the start limit.
//
// Rule 7 of shared/README.md.
func TestHiddenMachineEndsAtTheStartLimit(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runner.during = func(m *machine) error { m.hidden = true; return nil }
	task := h.post()
	h.sweep()
	h.wantState(task, run.ContainerCreating)
	h.runner.last().hidden = false
	h.sweep()
	h.advance(time.Second)
	h.runner.last().Phase = port.MachineRunning
	h.sweep()
	h.wantState(task, run.Running)
	h.runner.last().hidden = true
	h.sweep()
	h.wantState(task, run.Running)
	h.advance(time.Minute)
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
		t.Run(fmt.Sprintf("shown=%t", shown), func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			task := h.post()
			m := h.runner.last()
			m.hidden = true
			h.ok(h.report(m, contract.Callback{Status: contract.StatusError, Error: "failed"}))
			h.advance(20 * time.Second)
			h.wantState(task, run.Terminating)
			m.hidden = !shown
			h.advance(40 * time.Second)
			h.advance(time.Minute) // the backoff of Step Functions
			h.wantState(task, run.Failed)
			if shown && m.Phase != port.MachineGone {
				t.Errorf("got machine %s after the end of the run, want %s", m.Phase, port.MachineGone)
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
	h.advance(9 * time.Minute)
	h.sweep()
	h.wantState(task, run.Running)
	h.wantEvents(task, "started heartbeat_exempted")
	h.runner.last().exit(3)
	h.sweep()
	if r := h.wantState(task, run.Retrying); r.Fault.Code != fault.WorkerLost || r.Spent.Attempts != 1 {
		t.Errorf("got fault %+v and %d spent attempts, want %s and 1", r.Fault, r.Spent.Attempts, fault.WorkerLost)
	}
	h.advance(3 * time.Second)
	h.wantState(task, run.Running)
	h.advance(10*time.Minute + 2*time.Second)
	if r := h.wantState(task, run.Failed); r.Fault.Code != fault.RunTimeout || h.runner.live() != 0 {
		t.Errorf("got fault %+v and %d live machines, want %s and 0", r.Fault, h.runner.live(), fault.RunTimeout)
	}
}
