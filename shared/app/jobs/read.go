package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/run"
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

// stored reads a job of the caller's tenant; nil for an unknown one.
func (s *Definitions) stored(ctx context.Context, who port.Identity, id string) (*job.Job, error) {
	if !limit.ValidName(id) {
		return nil, nil
	}
	j, err := s.store.LoadJob(ctx, who.Tenant, id)
	if errors.Is(err, port.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the job: %w", err)
	}
	return &j, nil
}

// Warnings returns sentences about parts of a job that are valid but probably not intended. Each
// begins with the field.
func (s *Jobs) Warnings(ctx context.Context, j job.Job) []string {
	found, work := append(j.Definition.Warnings(), s.unknownJobs(ctx, j)...), j.Run(s.config.Policy).Work
	if s.config.HasSecret != nil {
		for field, name := range j.Definition.SecretRefs() {
			if !s.config.HasSecret(ctx, j.Tenant, name) {
				found = append(found, fmt.Sprintf("%s: no secret %q yet", field, name))
			}
		}
	}
	if s.config.CheckImage == nil || work.Image == "" {
		return found
	}
	pool, err := s.capacity.Pools.Pool(ctx, j.Tenant, j.Definition.Pool)
	if err == nil {
		err = s.config.CheckImage(ctx, pool.Placement.Runner, work.Image)
	}
	if fault.Is(err, fault.Image) {
		found = append(found, "image: "+fault.Of(err).Message)
	}
	return found
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

// Filter selects jobs that match each of its fields. The zero value of a field matches all.
type Filter struct {
	// Text is contained in the id or the name, in any case.
	Text     string
	Schedule Schedule
	Labels   label.Selector
}

// Schedule is whether jobs fire by themselves.
type Schedule string

// The schedules of a filter: jobs that fire, paused jobs, and jobs without a schedule.
const (
	Active      Schedule = "active"
	Paused      Schedule = "paused"
	Unscheduled Schedule = "none"
)

func (f Filter) matches(j job.Job) bool {
	text, scheduled := strings.ToLower(f.Text), j.Definition.Scheduled()
	return f.Labels.Matches(j.Definition.Labels) && (strings.Contains(j.ID, text) || strings.Contains(strings.ToLower(j.Definition.Name), text)) &&
		(f.Schedule == "" || f.Schedule == Active && scheduled && !j.Paused || f.Schedule == Paused && j.Paused || f.Schedule == Unscheduled && !scheduled)
}

// mostPages is the largest number of pages of the store that are read for a page of selected jobs.
const mostPages = 40

// Jobs reads a page of the caller's jobs that a filter selects, ordered by id. The page may be
// short although more jobs follow: next is then not empty.
func (s *Jobs) Jobs(ctx context.Context, who port.Identity, page port.Page, f Filter) (found []job.Job, next string, err error) {
	most := page.Limit
	for range mostPages {
		var listed []job.Job
		if listed, next, err = s.store.Jobs(ctx, who.Tenant, page); err != nil {
			return nil, "", fmt.Errorf("cannot list the jobs: %w", err)
		}
		found = append(found, slices.DeleteFunc(listed, func(j job.Job) bool { return !f.matches(j) })...)
		if page.Cursor, page.Limit = next, most-len(found); next == "" || page.Limit == 0 {
			break
		}
	}
	return found, next, nil
}

// upcomingRead is the largest number of jobs that Upcoming reads. farAhead is later than any
// firing that is shown: the next firing of a job is at most some years ahead.
const (
	upcomingRead = 500
	farAhead     = 10 * 366 * 24 * time.Hour
)

// Upcoming reads the caller's jobs that fire next, at most limit, ordered by their wake-up. The
// index has the jobs of all tenants, so it reads at most upcomingRead jobs.
func (s *Jobs) Upcoming(ctx context.Context, who port.Identity, limit int) (found []job.Job, err error) {
	for after, read := "", 0; read < upcomingRead; {
		refs, next, err := s.store.JobsDue(ctx, s.now().Add(farAhead), after, min(2*limit, upcomingRead-read))
		if err != nil {
			return nil, fmt.Errorf("cannot list the jobs that fire next: %w", err)
		}
		for _, ref := range refs {
			if ref.Tenant != who.Tenant {
				continue
			}
			j, err := s.stored(ctx, who, ref.ID)
			if err != nil {
				return nil, err
			}
			if j == nil || j.WakeAt.IsZero() { // changed meanwhile
				continue
			}
			if found = append(found, *j); len(found) == limit {
				return found, nil
			}
		}
		if read, after = read+len(refs), next; next == "" {
			break
		}
	}
	return found, nil
}

// newestReaders is the number of jobs whose runs Newest reads at the same time.
const newestReaders = 8

// Newest reads the newest runs of each job, at most limit of them, the newest first, without the
// children of runs.
func (s *Jobs) Newest(ctx context.Context, jobs []job.Job, limit int) ([][]run.Run, error) {
	found := make([][]run.Run, len(jobs))
	reading, ctx := errgroup.WithContext(ctx)
	reading.SetLimit(newestReaders)
	for i, j := range jobs {
		reading.Go(func() (err error) {
			found[i], _, err = s.store.List(ctx, j.Tenant, port.Page{JobID: j.ID, Limit: limit})
			return err
		})
	}
	if err := reading.Wait(); err != nil {
		return nil, fmt.Errorf("cannot list the runs of the jobs: %w", err)
	}
	return found, nil
}
