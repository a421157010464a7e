package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/job"
	"github.com/sortie-dev/sortie/shared/label"
	"github.com/sortie-dev/sortie/shared/port"
)

// Job reads a job of the caller's tenant. Fault: NotFound.
func (s *Definitions) Job(ctx context.Context, who port.Identity, id string) (job.Job, error) {
	j, err := s.stored(ctx, who, id)
	if err == nil && j == nil {
		err = noJob(id)
	}
	if err != nil {
		return job.Job{}, err
	}
	return *j, nil
}

// Version reads the job as it was with a version of its definition. Fault: NotFound.
func (s *Jobs) Version(ctx context.Context, who port.Identity, id string, version int64) (job.Job, error) {
	j, err := s.Job(ctx, who, id)
	if err != nil || version == j.Version {
		return j, err
	}
	j, err = s.store.JobVersion(ctx, who.Tenant, id, version)
	if errors.Is(err, port.ErrNotFound) {
		return job.Job{}, fault.New(fault.NotFound, "the job has no version %d", version)
	}
	if err != nil {
		return job.Job{}, fmt.Errorf("cannot read the version of the job: %w", err)
	}
	return j, nil
}

// mostPages is the maximum number of pages of the store that are read for one page of selected
// jobs.
const mostPages = 20

// Jobs reads a page of the caller's jobs that a selector selects, ordered by id. The page may be
// short although more jobs follow: next is then not empty.
func (s *Jobs) Jobs(ctx context.Context, who port.Identity, page port.Page, selector label.Selector) (jobs []job.Job, next string, err error) {
	for wanted, pages := page.Limit, 0; ; {
		listed, next, err := s.store.Jobs(ctx, who.Tenant, page)
		if err != nil {
			return nil, "", fmt.Errorf("cannot list the jobs: %w", err)
		}
		for _, j := range listed {
			if selector.Matches(j.Definition.Labels) {
				jobs = append(jobs, j)
			}
		}
		pages++
		page.Cursor, page.Limit = next, wanted-len(jobs)
		if next == "" || page.Limit <= 0 || pages == mostPages {
			return jobs, next, nil
		}
	}
}
