package api_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestFiguresOfARun shows a skipped run, and a run that has not ended.
func TestFiguresOfARun(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	now := begin
	first := run.Run{
		ID: "a", TaskID: "a", JobID: "nightly", Work: spec.Work{Kind: spec.KindJob, Program: &spec.Program{}},
		Constraints: &spec.Constraints{MaxConcurrentRuns: 1}, Policy: spec.Policy{Retry: spec.Retry{MaxAttempts: 3}},
	}
	r := run.New(first, now).Run
	violated := spec.ConstraintViolation{Constraint: spec.MaxConcurrentRuns, Message: "all slots are held", At: now}
	for _, f := range []run.Fact{
		run.Admitted{Pool: "p"}, run.Checked{Violations: []spec.ConstraintViolation{violated}}, run.ActionStarted{}, run.ActionEnded{},
	} {
		now = now.Add(2 * time.Second)
		d, err := run.Decide(r, f, now)
		if err != nil {
			t.Fatal(err)
		}
		r = d.Run
	}
	task := api.Task(runs.View{Run: r, QueuePosition: -1, At: now.Add(time.Hour)})
	wantViolations := []contract.Violation{{Constraint: "maxConcurrentRuns", Message: "all slots are held", Timestamp: violated.At}}
	want := contract.Measured{
		RunID: "a", JobID: "nightly", FinalState: "Completed", Skipped: true,
		StateTransitionTimestamps: map[string]time.Time{
			"Pending": begin, "ConditionPending": begin.Add(2 * time.Second), "ConditionRunning": begin.Add(4 * time.Second),
			"ActionPending": begin.Add(4 * time.Second), "ActionRunning": begin.Add(6 * time.Second), "Completed": begin.Add(8 * time.Second),
		},
		QueueSeconds: 2, ConstraintCheckSeconds: 2, ActionExecutionSeconds: 4, TotalSeconds: 8, StateTransitionCount: 5,
		ConstraintsChecked: 1, ConstraintsViolated: 1, ActionsExecuted: 1, MaxRetries: 2,
	}
	if diff := cmp.Diff(wantViolations, task.Violations); diff != "" || !task.Skipped {
		t.Errorf("skipped %v, violations (-want +got):\n%s", task.Skipped, diff)
	}
	if diff := cmp.Diff(want, task.Measured); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	if running := api.Task(runs.View{Run: run.New(first, now).Run, At: now.Add(time.Minute)}); running.Measured.QueueSeconds != 60 {
		t.Errorf("got %+v of a queued run, want a minute in the queue", running.Measured)
	}
	export := view(func(r *run.Run) {
		r.Work.Kind, r.ID, r.State, r.Tally.Heartbeats = spec.KindExport, "e", run.Running, 3
	})
	export.Heartbeat = &run.Heartbeat{Received: 4}
	if m := api.Task(export).Measured; m.RunID != "e" || m.HeartbeatsSent != 7 || m.FinalState != "" {
		t.Errorf("got figures %+v of a running export, want those of its run and 7 heartbeats", m)
	}
	r.Tally.ActedAfter = 1
	r.Tally.Calls = map[string]int{platform.RunnerKubernetes: 5, platform.RunnerFly: 2}
	want.KubernetesAPICalls, want.PlatformAPICalls = 5, 7
	end := run.Event{Type: run.EventCompleted, At: now, From: run.ActionRunning, State: run.Completed}
	if diff := cmp.Diff(&want, api.Event(r, end).Measured); diff != "" {
		t.Errorf("figures of the terminal event (-want +got):\n%s", diff)
	}
}
