package run_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestPhasesAddUpToTheTotal runs through a life with a wait and a retry.
func TestPhasesAddUpToTheTotal(t *testing.T) {
	t.Parallel()
	now := epoch
	first := fresh()
	constrain(&first, spec.ActionWait)
	first.ScheduledAt = now.Add(time.Hour)
	r := run.New(first, now).Run
	var last run.Event
	play := func(after time.Duration, f run.Fact) {
		t.Helper()
		now = now.Add(after + 400*time.Microsecond) // so that no phase is a whole number of milliseconds
		d, err := run.Decide(r, f, now)
		if err != nil {
			t.Fatal(err)
		}
		if !d.Changed {
			t.Fatalf("%T changes nothing in %s", f, r.State)
		}
		if r = d.Run; len(d.Events) > 0 {
			last = d.Events[len(d.Events)-1]
		}
	}
	admitted := run.Admitted{Pool: "p", Limit: 2}
	play(time.Hour, run.Due{})
	play(time.Second, admitted)
	play(time.Second, run.Checked{Violations: violated(spec.MaxConcurrentRuns)})
	play(time.Second, run.ActionStarted{})
	play(time.Second, run.ActionEnded{})
	play(time.Minute, run.JobGranted{Limit: 1})
	play(0, run.Checked{})
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
	sum := time.Duration(0)
	for phase, got := range m.Phases {
		if off := (got - want[phase]).Abs(); off > 2*time.Millisecond {
			t.Errorf("got %s in %s, want %s", got, phase, want[phase])
		}
		sum += got
	}
	if len(m.Phases) != len(want) {
		t.Errorf("got phases %v, want %v", m.Phases, want)
	}
	if total := time.Duration(now.UnixMilli()-epoch.UnixMilli()) * time.Millisecond; m.Total != total || sum != total {
		t.Errorf("got total %s and a sum of %s, want %s", m.Total, sum, total)
	}
	if created, ended := m.Entered[run.PreRun], m.Entered[run.Completed]; created.UnixMilli() != epoch.UnixMilli() || ended.UnixMilli() != now.UnixMilli() {
		t.Errorf("got times %v, want the creation and the end", m.Entered)
	}
	if end, ended := r.EndMetrics(last); !ended || !reflect.DeepEqual(end, m) {
		t.Errorf("got metrics %+v of the terminal event, want %+v", end, m)
	}
	if m.StateTransitions != 14 || m.ConstraintsChecked != 8 || m.ConstraintsViolated != 1 || m.ActionsExecuted != 1 || m.ActionsFailed != 0 {
		t.Errorf("got metrics %+v", m)
	}
	if m.RetryAttempt != 1 || m.MaxRetries != 2 || m.StartLatency.Round(time.Second) != 5*time.Second || !m.Success || m.Skipped || m.State != run.Completed {
		t.Errorf("got metrics %+v", m)
	}
}

// TestCallsAreCountedByRunner counts the calls of a run that falls back.
func TestCallsAreCountedByRunner(t *testing.T) {
	t.Parallel()
	r := run.New(fresh(), epoch).Run
	first := r.Tally.Called(map[string]int{platform.RunnerKubernetes: 2})
	r.Tally = first.Called(map[string]int{platform.RunnerFly: 1, platform.RunnerKubernetes: 3}).Called(nil)
	if got, want := r.Metrics(epoch).Calls, map[string]int{platform.RunnerFly: 1, platform.RunnerKubernetes: 5}; !reflect.DeepEqual(got, want) {
		t.Errorf("got calls %v, want %v", got, want)
	}
	if first.Calls[platform.RunnerKubernetes] != 2 {
		t.Errorf("got calls %v of the earlier tally, want it unchanged", first.Calls)
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

// TestOnlyTheEndHasMetrics covers a run without attempts, and the record of skipped firings,
// which ends with its creation.
func TestOnlyTheEndHasMetrics(t *testing.T) {
	t.Parallel()
	d := run.New(fresh(), epoch)
	if m, ended := d.Run.EndMetrics(d.Events[0]); ended {
		t.Errorf("got metrics %+v of a new run, want none", m)
	}
	d, err := run.Decide(d.Run, run.CancelRequested{By: "t"}, epoch.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	for d.Run.State != run.Cancelled {
		if d, err = run.Decide(d.Run, run.Admitted{Pool: "p"}, epoch.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if m, ended := d.Run.EndMetrics(d.Events[len(d.Events)-1]); !ended || m.State != run.Cancelled || m.Total != time.Second || m.Success || m.ErrorMessage == "" {
		t.Errorf("got metrics %+v of a cancelled run, want its figures", m)
	}
	skipped := fresh()
	skipped.Missed = &run.Missed{Reason: run.SkipMissed, Count: 1}
	d = run.NewSkipped(skipped, epoch)
	if m, ended := d.Run.EndMetrics(d.Events[0]); !ended || !m.Skipped || m.Success || m.Total != 0 || !m.Entered[run.Completed].Equal(epoch) {
		t.Errorf("got metrics %+v of a skipped firing, want no time and no success", m)
	}
}

// TestClocksThatDiffer: a transition whose time is before the entry into the state counts as no
// time.
func TestClocksThatDiffer(t *testing.T) {
	t.Parallel()
	r := run.New(fresh(), epoch).Run
	d, err := run.Decide(r, run.Admitted{Pool: "p", Limit: 1}, epoch.Add(-time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if m := d.Run.Metrics(epoch.Add(time.Second)); m.Phases[run.PhaseQueue] != 0 || m.Total != 2*time.Second {
		t.Errorf("got metrics %+v, want no time in the queue and two seconds in all", m)
	}
}
