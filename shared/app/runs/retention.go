package runs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Pin pins a run, in any state, or unpins it. It is idempotent and returns the newest record.
// Faults: NotFound as for Queries.Task, OutputExpired as for run.PinChanged.
func (s *Requests) Pin(ctx context.Context, who port.Identity, taskID string, pinned bool) (run.Run, error) {
	r, err := s.find(ctx, who, taskID)
	if err != nil {
		return run.Run{}, err
	}
	r, err = s.applyTo(ctx, r, constantFact(run.PinChanged{Pinned: pinned, By: who.Actor()}))
	if errors.Is(err, port.ErrNotFound) {
		return run.Run{}, fault.New(fault.NotFound, "no such task, or it has expired")
	}
	if err != nil {
		return run.Run{}, fmt.Errorf("cannot pin the run: %w", err)
	}
	return r, nil
}

// newestRuns caches the newest runs of jobs. An outdated entry holds runs for longer.
type newestRuns struct {
	mu    sync.Mutex
	since time.Time
	jobs  map[job.Ref]job.NewestRuns
}

// newestFor is how long the newest runs of jobs are cached.
const newestFor = 10 * time.Minute

// expire checks the retention of a held run and deletes the expired objects of a run.
func (s *Outputs) expire(ctx context.Context, ref run.Ref) error {
	r, err := s.store.Load(ctx, ref)
	if err != nil {
		return err
	}
	if r.Held {
		newest, awaited, parentEnded := job.NewestRuns{}, false, time.Time{}
		switch {
		case r.Pin != nil:
		case r.HasParent():
			if awaited, parentEnded, err = s.parentOf(ctx, r); err != nil {
				return err
			}
		default:
			if newest, err = s.newestOf(ctx, job.Ref{Tenant: r.Tenant, ID: r.JobID}); err != nil {
				return err
			}
			if awaited, err = s.awaited(ctx, r); err != nil {
				return err
			}
		}
		if r, err = s.applyTo(ctx, r, func(r run.Run) run.Fact {
			return run.RetentionChecked{Newest: newest.Has(r), Awaited: awaited, ParentEndedAt: parentEnded}
		}); err != nil {
			return err
		}
	}
	return s.deleteExpiredOf(ctx, r)
}

// parentOf reports whether the parent of a child has not ended, and when it did.
func (s *Outputs) parentOf(ctx context.Context, r run.Run) (awaited bool, ended time.Time, err error) {
	parent, err := s.store.Load(ctx, run.Ref{Tenant: r.Tenant, ID: r.Child.Parent})
	if errors.Is(err, port.ErrNotFound) {
		return false, time.Time{}, nil
	}
	if err != nil {
		return false, time.Time{}, fmt.Errorf("cannot read the parent: %w", err)
	}
	return !parent.State.Terminal() && r.MayBeAwaited(s.now()), parent.EndedAt, nil
}

// awaited reports whether a job that comes after r has no run in the graph that has ended.
func (s *Outputs) awaited(ctx context.Context, r run.Run) (bool, error) {
	if !r.MayBeAwaited(s.now()) {
		return false, nil
	}
	place := r.PlaceInGraph()
	for _, id := range r.Followers {
		next, err := s.store.LoadJob(ctx, r.Tenant, id)
		if errors.Is(err, port.ErrNotFound) || err == nil && !next.Definition.ComesAfter(r.JobID) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("cannot read job %s: %w", id, err)
		}
		child, err := s.store.Load(ctx, run.Ref{Tenant: r.Tenant, ID: place.RunID(id)})
		created := !errors.Is(err, port.ErrNotFound)
		switch {
		case created && err != nil:
			return false, fmt.Errorf("cannot read the run of job %s: %w", id, err)
		case !created || !child.State.Terminal():
			return true, nil
		}
	}
	return false, nil
}

// newestOf returns the newest runs of a job, as many as its definition keeps now. A deleted job
// keeps none.
func (s *Outputs) newestOf(ctx context.Context, ref job.Ref) (newest job.NewestRuns, err error) {
	s.newest.mu.Lock()
	defer s.newest.mu.Unlock()
	if now := s.now(); now.Sub(s.newest.since) > newestFor {
		s.newest.since, s.newest.jobs = now, map[job.Ref]job.NewestRuns{}
	}
	if newest, ok := s.newest.jobs[ref]; ok {
		return newest, nil
	}
	j, err := s.store.LoadJob(ctx, ref.Tenant, ref.ID)
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		return newest, fmt.Errorf("cannot read the job: %w", err)
	}
	if kept := j.Definition.Retention; err == nil && kept != nil && kept.Newest != nil {
		newest.Count = *kept.Newest
	}
	page := port.Page{JobID: ref.ID, Limit: sweepPage}
	for complete := newest.Count == 0; !complete; {
		runs, next, err := s.store.List(ctx, ref.Tenant, page)
		if err != nil {
			return newest, fmt.Errorf("cannot list the runs of the job: %w", err)
		}
		for _, r := range runs {
			complete = complete || newest.Add(r)
		}
		page.Cursor = next
		complete = complete || next == ""
	}
	s.newest.jobs[ref] = newest
	return newest, nil
}
