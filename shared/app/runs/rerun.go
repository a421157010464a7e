package runs

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/rerun"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// rerunsRead is the number of newest runs of a job that are searched for reruns in a graph. Older
// reruns do not count.
const rerunsRead = 20

// downstream places again, a rerun of old, at the begin of a graph of the jobs that come after it.
// The list of runs may lag, so two concurrent requests can begin two graphs. Faults: those of
// rerun.Plan, rerun.NoJob and rerun.NoParent.
func (s *Runs) downstream(ctx context.Context, old run.Run, again *run.Run) error {
	if old.JobID == "" {
		return rerun.NoJob(old)
	}
	if old.HasParent() {
		return rerun.NoParent(old)
	}
	load := func(id string) (*job.Job, error) {
		j, err := s.store.LoadJob(ctx, old.Tenant, id)
		if errors.Is(err, port.ErrNotFound) {
			return nil, nil
		}
		return &j, err
	}
	first, err := load(old.JobID)
	if err != nil {
		return fmt.Errorf("cannot read the job: %w", err)
	}
	if first == nil {
		return rerun.NoJob(old)
	}
	jobs, err := rerun.Downstream(*first, load)
	if err != nil {
		return err
	}
	again.Graph, err = rerun.Plan(old, jobs, func(jobID string) (*run.Run, error) { return s.newestIn(ctx, old, jobID) })
	again.Followers = first.Followers
	return err
}

// newestIn returns the newest run of a job in the original graph of r; nil without one.
func (s *Records) newestIn(ctx context.Context, r run.Run, jobID string) (*run.Run, error) {
	origin := r.OriginalGraph()
	newest, _, err := s.store.List(ctx, r.Tenant, port.Page{JobID: jobID, Limit: rerunsRead})
	if err != nil {
		return nil, fmt.Errorf("cannot list the runs of job %s: %w", jobID, err)
	}
	for _, found := range newest {
		if found.Child == nil && found.OriginalGraph() == origin { // a child is in the graph of its parent
			return &found, nil
		}
	}
	for _, id := range []string{run.Graph{Key: origin}.RunID(jobID), origin} {
		found, err := s.store.Load(ctx, run.Ref{Tenant: r.Tenant, ID: id})
		if err == nil && found.JobID == jobID {
			return &found, nil
		}
		if err != nil && !errors.Is(err, port.ErrNotFound) {
			return nil, fmt.Errorf("cannot read run %s: %w", id, err)
		}
	}
	return nil, nil
}
