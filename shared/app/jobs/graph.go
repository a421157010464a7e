package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/explain"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// loader returns the stored jobs of the caller's tenant.
func (s *Definitions) loader(ctx context.Context, who port.Identity) job.Loader {
	return func(id string) (*job.Job, error) { return s.stored(ctx, who, id) }
}

// unknownJobs returns a warning for each job that j comes after and that does not exist.
func (s *Jobs) unknownJobs(ctx context.Context, j job.Job) (warnings []string) {
	for i, a := range j.Definition.After {
		if _, err := s.store.LoadJob(ctx, j.Tenant, a.Job); errors.Is(err, port.ErrNotFound) {
			warnings = append(warnings, job.UnknownAfter(i, a.Job))
		}
	}
	return warnings
}

// follow records in each job that j comes after that j follows it, before j is stored. If j is
// then not stored, the entry is stale, and a run ignores it. Fault: Unprocessable for an unknown
// job, which was deleted meanwhile.
func (s *Jobs) follow(ctx context.Context, j job.Job) error {
	for i, a := range j.Definition.After {
		err := s.changeFollower(ctx, j.Tenant, a.Job, j.ID, true)
		if errors.Is(err, port.ErrNotFound) {
			f := fault.New(fault.Unprocessable, "unknown job %q, want a stored job", a.Job)
			f.Field = fmt.Sprintf("after.%d", i)
			return f
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unfollow removes a job from the jobs that it does not come after any more. It only logs an error:
// a run ignores stale entries.
func (s *Jobs) unfollow(ctx context.Context, before job.Job, after job.Definition) {
	for _, a := range before.Definition.After {
		if after.ComesAfter(a.Job) {
			continue
		}
		if err := s.changeFollower(ctx, before.Tenant, a.Job, before.ID, false); err != nil && !errors.Is(err, port.ErrNotFound) {
			s.log.WarnContext(ctx, "cannot remove a follower of a job", "job_id", a.Job, "follower", before.ID, "error", err.Error())
		}
	}
}

// changeFollower adds or removes a follower of a job. It changes no version of the job.
func (s *Jobs) changeFollower(ctx context.Context, tenant, jobID, follower string, follows bool) error {
	for range port.CommitTries {
		upstream, err := s.store.LoadJob(ctx, tenant, jobID)
		if err != nil {
			return fmt.Errorf("cannot read job %s: %w", jobID, err)
		}
		changed := upstream.WithFollower(follower, follows)
		if len(changed.Followers) == len(upstream.Followers) {
			return nil
		}
		err = s.store.SaveJob(ctx, changed)
		if !errors.Is(err, port.ErrConflict) {
			return err
		}
	}
	return tooManyChanges()
}

// checkUnfollowed refuses to delete a job that other jobs come after.
func (s *Jobs) checkUnfollowed(ctx context.Context, who port.Identity, j job.Job) error {
	var followers []string
	for _, id := range j.Followers {
		follower, err := s.stored(ctx, who, id)
		if err != nil {
			return err
		}
		if follower != nil && follower.Definition.ComesAfter(j.ID) {
			followers = append(followers, id)
		}
	}
	if len(followers) == 0 {
		return nil
	}
	return fault.New(fault.Unprocessable, "other jobs come after the job: %s; delete them first, or remove it from their after", strings.Join(followers, ", "))
}

// upstreamRuns is the number of newest runs of each job that the explanation of a job after it
// reads.
const upstreamRuns = 3

// upstream returns the jobs that j comes after, and what j needs in the newest graph that it waits
// in; no needs if it waits in none.
func (s *Definitions) upstream(ctx context.Context, who port.Identity, j job.Job) (jobs map[string]job.Job, needs []run.Need, err error) {
	jobs = map[string]job.Job{}
	var begun []run.Run
	for _, a := range j.Definition.After {
		upstream, err := s.stored(ctx, who, a.Job)
		if err != nil {
			return nil, nil, err
		}
		if upstream == nil {
			continue
		}
		jobs[a.Job] = *upstream
		newest, _, err := s.store.List(ctx, who.Tenant, port.Page{JobID: a.Job, Limit: upstreamRuns})
		if err != nil {
			return nil, nil, fmt.Errorf("cannot list the runs of job %s: %w", a.Job, err)
		}
		for _, r := range newest {
			if slices.Contains(r.Followers, j.ID) {
				begun = append(begun, r)
			}
		}
	}
	needs, err = s.awaited(ctx, who, j, begun)
	return jobs, needs, err
}

// awaited returns what j needs in the newest graph of the runs that has none of j; no needs without
// such a graph.
func (s *Definitions) awaited(ctx context.Context, who port.Identity, j job.Job, begun []run.Run) ([]run.Need, error) {
	slices.SortStableFunc(begun, func(a, b run.Run) int { return b.CreatedAt.Compare(a.CreatedAt) })
	decided := map[string]bool{}
	for _, r := range begun {
		place := r.PlaceInGraph()
		if decided[place.Key] {
			continue
		}
		decided[place.Key] = true
		own, err := s.runIn(ctx, who, place, j.ID)
		if err != nil {
			return nil, err
		}
		if own != nil {
			continue
		}
		needs := j.Definition.Needs()
		for i := range needs {
			if needs[i].Run, err = s.runIn(ctx, who, place, needs[i].JobID); err != nil {
				return nil, err
			}
		}
		return needs, nil
	}
	return nil, nil
}

// runIn returns the run of a job in a graph; nil if it does not exist.
func (s *Definitions) runIn(ctx context.Context, who port.Identity, place run.Graph, jobID string) (*run.Run, error) {
	r, err := s.store.Load(ctx, run.Ref{Tenant: who.Tenant, ID: place.RunID(jobID)})
	if errors.Is(err, port.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the run of job %s: %w", jobID, err)
	}
	return &r, nil
}

// graphOf returns the jobs of the graph of a run with their runs; nil for a run that is in none.
func (s *Definitions) graphOf(ctx context.Context, who port.Identity, r run.Run) ([]explain.GraphJob, error) {
	if r.Graph == nil && len(r.Followers) == 0 {
		return nil, nil
	}
	j, err := s.stored(ctx, who, r.JobID)
	if err != nil || j == nil {
		return nil, err
	}
	return explain.Graph(*j, &r, s.loader(ctx, who), func(place run.Graph, jobID string) (*run.Run, error) {
		return s.runIn(ctx, who, place, jobID)
	})
}
