package series_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/domain/forecast"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

var epoch = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

func firing() run.Run {
	return run.Run{
		ID: "nightly:20260301T075955Z", TaskID: "job_1", JobID: "nightly", Trigger: run.TriggerSchedule,
		ScheduledAt: epoch.Add(-5 * time.Second), FiredAt: epoch, Work: spec.Work{Kind: spec.KindJob, Program: &spec.Program{}},
		Policy: spec.Policy{Retry: spec.Retry{MaxAttempts: 1}},
	}
}

// TestRunIsCountedAtItsEnd checks the samples of a scheduled run that fails. Only its first and
// its last commit have samples.
func TestRunIsCountedAtItsEnd(t *testing.T) {
	t.Parallel()
	d := run.New(firing(), epoch)
	want := []series.Sample{{Name: series.Firings, Value: 1, Labels: []string{"fired"}}, {Name: series.Lateness, Value: 5}}
	if diff := cmp.Diff(want, series.OfCommit(d.Run, d.Events)); diff != "" {
		t.Errorf("samples of the firing (-want +got):\n%s", diff)
	}
	now := epoch
	d.Run.Tally = d.Run.Tally.Called(map[string]int{platform.RunnerKubernetes: 5, platform.RunnerFly: 2})
	for i, f := range []run.Fact{
		run.Admitted{Pool: "p", Limit: 1}, run.MachineRunning{Attempt: 1}, run.MachineGone{Attempt: 1, Exit: &run.Exit{Code: 1}}, run.Settled{},
	} {
		if samples := series.OfCommit(d.Run, d.Events); i > 0 && len(samples) > 0 {
			t.Errorf("got samples %v of a run in %s, want none", samples, d.Run.State)
		}
		now = now.Add(time.Duration(i+1) * time.Second)
		var err error
		if d, err = run.Decide(d.Run, f, now); err != nil {
			t.Fatal(err)
		}
	}
	job := []string{"job"}
	want = []series.Sample{
		{series.Runs, 1, []string{"job", "Failed", "false"}},
		{series.RunTotal, 10, job},
		{"sortie_run_queue_seconds", 1, job},
		{"sortie_run_container_creation_seconds", 2, job},
		{"sortie_run_execution_seconds", 3, job},
		{"sortie_run_termination_seconds", 4, job},
		{series.StartLatency, 2, job},
		{series.Transitions, 4, job},
		{series.APICalls, 2, []string{"job", "fly"}},
		{series.APICalls, 5, []string{"job", "kubernetes"}},
	}
	if diff := cmp.Diff(want, series.OfCommit(d.Run, d.Events)); diff != "" {
		t.Errorf("samples of the end (-want +got):\n%s", diff)
	}
}

// TestErrorOfAPredictedStartIsObserved starts runs before the p50, before the p90 and after it.
func TestErrorOfAPredictedStartIsObserved(t *testing.T) {
	t.Parallel()
	for waited, want := range map[time.Duration]series.Sample{
		time.Second:      {series.PredictionError, -1, []string{"job", "true"}},
		9 * time.Second:  {series.PredictionError, 7, []string{"job", "true"}},
		11 * time.Second: {series.PredictionError, 9, []string{"job", "false"}},
	} {
		d := run.New(firing(), epoch)
		for _, step := range []struct {
			fact run.Fact
			at   time.Time
		}{
			{run.Admitted{Pool: "p", Prediction: &forecast.Prediction{P50: 2000, P90: 10_000}}, epoch},
			{run.MachineRunning{Attempt: 1}, epoch.Add(waited)},
		} {
			var err error
			if d, err = run.Decide(d.Run, step.fact, step.at); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]series.Sample{want}, series.OfCommit(d.Run, d.Events)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", waited, diff)
		}
	}
}

// TestSkippedFiringsAreCounted checks the samples of a record of skipped firings.
func TestSkippedFiringsAreCounted(t *testing.T) {
	t.Parallel()
	r := firing()
	r.Missed = &run.Missed{Reason: run.SkipMissed, Count: 7}
	d := run.NewSkipped(r, epoch)
	want := []series.Sample{
		{series.Runs, 1, []string{"job", "Completed", "true"}},
		{series.Firings, 7, []string{"skipped"}},
	}
	if diff := cmp.Diff(want, series.OfCommit(d.Run, d.Events)); diff != "" {
		t.Error(diff)
	}
}

func TestEveryPhaseHasAFamily(t *testing.T) {
	t.Parallel()
	families := series.Families()
	for _, p := range run.Phases() {
		if !slices.ContainsFunc(families, func(f series.Family) bool { return f.Name == series.Phase(p) && f.Kind == series.Histogram }) {
			t.Errorf("got no histogram %s", series.Phase(p))
		}
	}
	if name := series.Phase(run.PhasePreRun); name != "sortie_run_pre_run_seconds" {
		t.Errorf("got %s, want sortie_run_pre_run_seconds", name)
	}
}
