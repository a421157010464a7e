package run_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestSkippedFiringsAreOneCompletedRun: the record of skipped firings is terminal. It has no
// effect, lease or result, and no fact changes it.
func TestSkippedFiringsAreOneCompletedRun(t *testing.T) {
	t.Parallel()
	r := fresh()
	r.JobID, r.Trigger, r.ScheduledAt = "nightly", run.TriggerSchedule, epoch
	r.Missed = &run.Missed{Reason: run.SkipMissed, Count: 3, Until: epoch.Add(2 * time.Hour)}
	d := run.NewSkipped(r, epoch.Add(3*time.Hour))
	got := d.Run
	if got.State != run.Completed || !got.Skipped || got.Attempt.Number != 0 || !got.EndedAt.Equal(epoch.Add(3*time.Hour)) ||
		!got.ExpiresAt.Equal(got.EndedAt.Add(got.Policy.RecordRetention)) || !got.Execution.ActBy.IsZero() {
		t.Errorf("got %+v, want a run that is Completed, skipped and without an attempt", got)
	}
	if len(d.Effects) > 0 || d.Lease != "" || d.JobLease != "" {
		t.Errorf("got effects %v and leases %q, %q, want none", d.Effects, d.Lease, d.JobLease)
	}
	if _, ok := got.Result(); ok {
		t.Error("got a result of the job, want none")
	}
	const message = "3 firings until 2026-11-21T11:00:00Z were skipped: missed, since a later one was due too or it was too late"
	if len(d.Events) != 1 || d.Events[0].Type != run.EventSkipped || d.Events[0].Message != message {
		t.Errorf("got events %+v, want one job.skipped: %s", d.Events, message)
	}
	r.Actions = &spec.Actions{OnSkip: &spec.Action{Type: spec.ActionTriggerJob, JobID: "repair"}, OnSuccess: &spec.Action{Type: spec.ActionTriggerJob, JobID: "publish"}}
	if acts := run.NewSkipped(r, epoch); len(acts.Effects) != 1 || acts.Effects[0].Action != spec.OnSkip || len(acts.Run.Execution.Pending) != 1 || acts.Run.Execution.ActBy.IsZero() {
		t.Errorf("got effects %+v, pending %+v, want onSkip once", acts.Effects, acts.Run.Execution)
	}
	for _, fact := range []run.Fact{run.CancelRequested{By: "x"}, run.Due{}, run.Restarted{}, run.Admitted{Pool: "p", Limit: 1}} {
		if after, err := run.Decide(got, fact, epoch.Add(4*time.Hour)); err != nil || after.Changed {
			t.Errorf("%T: got changed %t (%v), want false", fact, after.Changed, err)
		}
	}
}
