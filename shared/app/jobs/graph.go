package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
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
			warnings = append(warnings, fmt.Sprintf("after.%d: the job %s does not exist yet; store it first", i, a.Job))
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
