package fake

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// SaveJob implements port.Store.
func (s *Store) SaveJob(ctx context.Context, j job.Job, notes ...port.Note) error {
	s.witness.saves(j)
	return s.call(context.Background(), "SaveJob", "", true, func() error { return s.inner.SaveJob(ctx, j, notes...) })
}

// FireJob implements port.Store.
func (s *Store) FireJob(ctx context.Context, j job.Job, firings ...port.Write) error {
	s.witness.saves(j)
	s.witness.fires(j, firings)
	return s.call(context.Background(), "FireJob", "", true, func() error {
		if err := s.inner.FireJob(ctx, j, firings...); err != nil {
			return err
		}
		for _, w := range firings {
			s.witness.saw(after(w))
		}
		return nil
	})
}

// LoadJob implements port.Store.
func (s *Store) LoadJob(ctx context.Context, tenant, jobID string) (job.Job, error) {
	return ask(s, "LoadJob", false, func() (job.Job, error) { return s.inner.LoadJob(ctx, tenant, jobID) })
}

// JobVersion implements port.Store.
func (s *Store) JobVersion(ctx context.Context, tenant, jobID string, version int64) (job.Job, error) {
	return ask(s, "JobVersion", false, func() (job.Job, error) { return s.inner.JobVersion(ctx, tenant, jobID, version) })
}

// DeletedVersion implements port.Store.
func (s *Store) DeletedVersion(ctx context.Context, tenant, jobID string) (int64, error) {
	return ask(s, "DeletedVersion", false, func() (int64, error) { return s.inner.DeletedVersion(ctx, tenant, jobID) })
}

// DeleteJob implements port.Store.
func (s *Store) DeleteJob(ctx context.Context, j job.Job, notes ...port.Note) error {
	return s.call(context.Background(), "DeleteJob", "", true, func() error { return s.inner.DeleteJob(ctx, j, notes...) })
}

// Jobs implements port.Store.
func (s *Store) Jobs(ctx context.Context, tenant string, page port.Page) (jobs []job.Job, next string, err error) {
	next, err = ask(s, "Jobs", false, func() (place string, err error) {
		jobs, place, err = s.inner.Jobs(ctx, tenant, page)
		return place, err
	})
	if err != nil {
		jobs = nil
	}
	return jobs, next, err
}

// JobsDue implements port.Store.
func (s *Store) JobsDue(ctx context.Context, now time.Time, after string, limit int) (due []job.Ref, next string, err error) {
	next, err = ask(s, "JobsDue", false, func() (place string, err error) {
		due, place, err = s.inner.JobsDue(ctx, now, after, limit)
		return place, err
	})
	if err != nil {
		due = nil
	}
	return due, next, err
}

// LastResult implements port.Store.
func (s *Store) LastResult(ctx context.Context, tenant, jobID string) (run.Result, error) {
	return ask(s, "LastResult", false, func() (run.Result, error) { return s.inner.LastResult(ctx, tenant, jobID) })
}
