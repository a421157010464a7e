package jobs

import (
	"context"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// applyLimits grants the slots that a change of the limits of a job has freed to the queued
// runs, in their order. The sweep grants the rest.
func (s *Jobs) applyLimits(ctx context.Context, before, after job.Job) {
	if was, is := before.Definition.MaxConcurrentRuns(), after.Definition.MaxConcurrentRuns(); was != is {
		if was == 0 {
			s.countRuns(ctx, after)
		}
		s.runs.FillAll(ctx, after.Tenant, platform.JobPool(after.ID))
	}
	was, is := before.Run(s.config.Policy).Concurrency, after.Run(s.config.Policy).Concurrency
	if was != nil && is != nil && was.Key == is.Key && was.Limit != is.Limit {
		s.runs.FillAll(ctx, after.Tenant, platform.KeyPool(is.Key))
	}
}

// countRuns makes the runs of a job that have not ended count against its new limit.
func (s *Jobs) countRuns(ctx context.Context, j job.Job) {
	for _, state := range []run.State{run.ContainerCreating, run.Running, run.Terminating, run.Retrying, run.Pending} {
		page := port.Page{JobID: j.ID, State: state, Limit: pageSize}
		for more := true; more; more = page.Cursor != "" {
			runs, next, err := s.store.List(ctx, j.Tenant, page)
			for _, r := range runs {
				if _, failed := s.runs.Apply(ctx, r, run.JobLimited{}); failed != nil {
					err = failed
				}
			}
			if err != nil {
				s.log.WarnContext(ctx, "cannot count all runs of the job against its new limit", "job_id", j.ID, "error", err.Error())
				return
			}
			page.Cursor = next
		}
	}
}

// clearedRuns is the number of waiting runs that Clear makes check again.
const clearedRuns = 64

// Clear ignores the results of the earlier runs of a job, so that the next run meets
// requirePreviousSuccess. Runs that wait for this constraint are evaluated again. A previous run
// that has not ended must still succeed. It is idempotent. Faults: NotFound, PreconditionFailed.
func (s *Jobs) Clear(ctx context.Context, who port.Identity, id string, required change.Precondition) (job.Job, error) {
	j, err := s.changeExisting(ctx, who, id, required, func(stored job.Job) (job.Job, error) { return stored.Clear(s.now()), nil })
	if err != nil {
		return job.Job{}, err
	}
	waiting, _, err := s.store.List(ctx, who.Tenant, port.Page{JobID: id, State: run.ActionRunning, Limit: clearedRuns})
	for _, r := range waiting {
		if _, err = s.runs.Apply(ctx, r, run.ActionRecheck{}); err != nil {
			break
		}
	}
	if err != nil {
		s.log.WarnContext(ctx, "cannot let the waiting runs check again; they do it themselves", "job_id", id, "error", err.Error())
	}
	return j, nil
}
