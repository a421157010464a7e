package runs_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// TestRunOfADeletedJobKeepsItsDefinition deletes a job while a run of it waits for its time,
// and stores another job with its id.
func TestRunOfADeletedJobKeepsItsDefinition(t *testing.T) {
	t.Parallel()
	for _, recreated := range []bool{false, true} {
		h := setup(t)
		h.job("nightly")
		first, err := h.store.LoadJob(t.Context(), client.Tenant, "nightly")
		h.ok(err)
		waiting := h.startRun(func(r *run.Run) {
			r.JobID, r.JobVersion, r.ScheduledAt = "nightly", 1, h.clock.now.Add(time.Hour)
			r.Work = spec.Work{Kind: spec.KindJob, Image: "own", Program: &spec.Program{}}
		})
		h.ok(h.store.DeleteJob(t.Context(), first))
		if recreated {
			deleted, err := h.store.DeletedVersion(t.Context(), client.Tenant, "nightly")
			h.ok(err)
			d := first.Definition
			d.Image = "other"
			h.ok(h.store.SaveJob(t.Context(), job.Create(client.Tenant, d, client.Subject, h.clock.now).After(deleted)))
		}
		h.advance(time.Hour + time.Second)
		if r := h.wantState(waiting, run.Running); r.Work.Image != "own" || r.JobVersion != 1 {
			t.Errorf("recreated %v: got image %s of version %d, want those of the run's own job", recreated, r.Work.Image, r.JobVersion)
		}
	}
}
