package run_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// TestViolatedConstraintsWereChecked: a run never counts more violated than checked
// constraints, whenever a violation is found.
func TestViolatedConstraintsWereChecked(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		constraints       spec.Constraints
		limit, took       time.Duration
		answer            *spec.HookAnswer
		checked, violated int
	}{
		"none":                       {spec.Constraints{}, time.Hour, time.Second, nil, 0, 0},
		"all are met":                {spec.Constraints{MaxExpectedRunTime: time.Minute, PostRunHook: &spec.Hook{}}, time.Hour, time.Second, &spec.HookAnswer{Allowed: true}, 2, 0},
		"time limit of the policy":   {spec.Constraints{}, time.Minute, 2 * time.Minute, nil, 1, 1},
		"hook after the run refuses": {spec.Constraints{MaxExpectedRunTime: time.Minute, PostRunHook: &spec.Hook{}}, time.Hour, time.Second, &spec.HookAnswer{Detail: "no"}, 2, 1},
	} {
		r := fresh()
		r.JobID, r.Constraints, r.Policy.TimeLimit, r.Policy.Retry.MaxAttempts = "nightly", &row.constraints, row.limit, 1
		r.Work = spec.Work{Kind: spec.KindJob, Program: &spec.Program{Completion: spec.CompletionExit}}
		now := epoch
		r = run.New(r, now).Run
		play := func(after time.Duration, f run.Fact) {
			t.Helper()
			now = now.Add(after)
			d, err := run.Decide(r, f, now)
			if err != nil {
				t.Fatal(err)
			}
			r = d.Run
			if m := r.Metrics(now); m.ConstraintsChecked < m.ConstraintsViolated {
				t.Errorf("%s, %T: got %d checked and %d violated constraints", name, f, m.ConstraintsChecked, m.ConstraintsViolated)
			}
		}
		play(time.Hour, run.Due{})
		play(time.Second, run.Admitted{Pool: "p", Limit: 2})
		play(time.Second, run.Checked{})
		play(time.Second, run.MachineRunning{Attempt: 1})
		started := now
		if row.took > row.limit {
			play(row.took, run.Evaluated{Machine: r.Attempt.Machine, Phase: run.PhaseRunning})
		} else {
			play(row.took, run.MachineGone{Attempt: 1, Exit: &run.Exit{}})
		}
		play(time.Second, run.Settled{PostRunHook: row.answer})
		m := r.Metrics(now)
		if !r.State.Terminal() || m.ConstraintsChecked != row.checked || m.ConstraintsViolated != row.violated || !r.StartedAt.Equal(started) {
			t.Errorf("%s: got %s with %d checked and %d violated, started at %v, want %d and %d at %v", name, r.State, m.ConstraintsChecked, m.ConstraintsViolated, r.StartedAt, row.checked, row.violated, started)
		}
	}
}

// TestRunStartsOnce: a later start of a second attempt does not change the first start of the
// run.
func TestRunStartsOnce(t *testing.T) {
	t.Parallel()
	r, now := run.New(fresh(), epoch).Run, epoch
	var starts []time.Time
	for _, f := range []run.Fact{
		run.Due{},
		run.Admitted{Pool: "p", Limit: 2},
		run.Checked{},
		run.MachineRunning{Attempt: 1},
		run.MachineGone{Attempt: 1, Exit: &run.Exit{Code: 1}},
		run.Settled{},
		run.Due{},
		run.Admitted{Pool: "p", Limit: 2},
		run.MachineRunning{Attempt: 2},
	} {
		now = now.Add(time.Hour)
		d, err := run.Decide(r, f, now)
		if err != nil {
			t.Fatal(err)
		}
		if r = d.Run; r.State == run.Running {
			starts = append(starts, now)
		}
	}
	if len(starts) != 2 || !r.StartedAt.Equal(starts[0]) || !r.Attempt.StartedAt.Equal(starts[1]) {
		t.Errorf("got starts %v, the run's %v and the attempt's %v, want the first and the last", starts, r.StartedAt, r.Attempt.StartedAt)
	}
}
