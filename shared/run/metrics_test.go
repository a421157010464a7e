package run_test

import (
	"maps"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/run"
)

// TestPhasesAddUpToTheTotal plays a run with a wait and a retry.
func TestPhasesAddUpToTheTotal(t *testing.T) {
	t.Parallel()
	now := epoch
	first := fresh()
	constrain(&first, run.ActionWait)
	first.ScheduledAt = now.Add(time.Hour)
	r := run.New(first, now).Run
	play := func(after time.Duration, f run.Fact) {
		t.Helper()
		now = now.Add(after)
		d, err := run.Decide(r, f, now)
		if err != nil {
			t.Fatal(err)
		}
		if !d.Changed {
			t.Fatalf("%T changes nothing in %s", f, r.State)
		}
		r = d.Run
	}
	admitted := run.Admitted{Pool: "p", Limit: 2}
	play(time.Hour, run.Due{})
	play(time.Second, admitted)
	play(time.Second, run.Checked{Violations: violated(run.MaxConcurrentRuns)})
	play(time.Second, run.ActionStarted{})
	play(time.Second, run.ActionEnded{})
	play(time.Minute, run.JobGranted{})
	play(time.Second, admitted)
	play(4*time.Second, run.MachineRunning{Attempt: 1})
	play(10*time.Second, run.MachineGone{Attempt: 1, Exit: &run.Exit{Code: 1}})
	play(time.Second, run.Settled{})
	play(2*time.Second, run.Due{})
	play(time.Second, admitted)
	play(5*time.Second, run.MachineRunning{Attempt: 2})
	play(20*time.Second, run.Reported{Attempt: 2, Report: run.Report{Digest: "d", Success: true}})
	play(3*time.Second, run.Settled{})
	m := r.Metrics(now.Add(time.Hour))
	want := map[run.Phase]time.Duration{
		run.PhasePreRun: time.Hour, run.PhaseQueue: 2 * time.Second, run.PhaseActionExecution: 63 * time.Second,
		run.PhaseContainerCreation: 9 * time.Second, run.PhaseExecution: 30 * time.Second, run.PhaseTermination: 4 * time.Second,
		run.PhaseRetryDelay: 2 * time.Second, run.PhaseConstraintCheck: time.Second,
	}
	if !maps.Equal(m.Phases, want) {
		t.Errorf("got phases %v, want %v", m.Phases, want)
	}
	if total := now.Sub(epoch); m.Total != total {
		t.Errorf("got total %s, want %s", m.Total, total)
	}
	if m.StateTransitions != 14 || m.ConstraintsChecked != 4 || m.ConstraintsViolated != 1 || m.ActionsExecuted != 1 || m.ActionsFailed != 0 {
		t.Errorf("got metrics %+v", m)
	}
	if m.RetryAttempt != 1 || m.MaxRetries != 2 || m.StartLatency != 5*time.Second || !m.Success || m.Skipped || m.FinalState != run.Completed {
		t.Errorf("got metrics %+v", m)
	}
}

// TestRunningPhaseCounts reads the metrics of a run that has not ended.
func TestRunningPhaseCounts(t *testing.T) {
	t.Parallel()
	r := run.New(fresh(), epoch).Run
	m := r.Metrics(epoch.Add(time.Minute))
	if m.Phases[run.PhaseQueue] != time.Minute || m.Total != time.Minute || m.StateTransitions != 0 || m.Success {
		t.Errorf("got metrics %+v, want a minute in the queue", m)
	}
}
