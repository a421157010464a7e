package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sortie-dev/sortie/shared/app/about"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Firing creates the runs of scheduled jobs.
type Firing struct {
	*Lifecycle
	schedules port.Schedules
}

// NewFiring returns Firing.
func NewFiring(life *Lifecycle, schedules port.Schedules) *Firing { return &Firing{life, schedules} }

// Fire commits the due firings of a job, starts their executions and sets the next wake-up. It
// may be repeated and called at any time: one commit stores a firing and the time of the next
// one, so a firing happens once. It removes the wake-up of a job that does not exist.
func (s *Firing) Fire(ctx context.Context, ref job.Ref) error {
	skipped, err := s.FireDue(ctx, ref)
	for _, d := range skipped { // a receiver of a user may take long, and must not delay the next wake-up
		s.actForJob(ctx, &d.Run, d.Effects)
	}
	return err
}

// FireDue is like Fire, but leaves the actions of skipped firings to the caller. It returns these
// firings, even together with an error.
func (s *Firing) FireDue(ctx context.Context, ref job.Ref) (skipped []run.Decision, err error) {
	ctx = WithEffectBudget(ctx)
	var done []time.Time
	for range port.CommitTries {
		j, err := s.store.LoadJob(ctx, ref.Tenant, ref.ID)
		if errors.Is(err, port.ErrNotFound) {
			return skipped, s.schedules.Remove(ctx, ref)
		}
		if err != nil {
			return skipped, fmt.Errorf("cannot read job %s: %w", ref.ID, err)
		}
		now := s.now()
		after, due := j.Fire(now, s.schedules.Precision(), port.MaxFirings, done...)
		if len(due) == 0 && after.NextAt.Equal(j.NextAt) {
			return skipped, s.Wake(ctx, j)
		}
		fired, err := s.fire(ctx, after, due, now)
		skipped = append(skipped, fired...)
		if conflict, taken := errors.AsType[*port.Conflict](err); taken {
			done = append(done, timesOf(after, due, conflict.Ref.ID)...)
		} else if err != nil && !errors.Is(err, port.ErrConflict) {
			return skipped, fmt.Errorf("cannot fire job %s: %w", ref.ID, err)
		}
	}
	return skipped, fault.New(fault.Unavailable, "too many concurrent changes of job %s; retry", ref.ID)
}

// Precision returns the precision of wake-ups.
func (s *Firing) Precision() time.Duration { return s.schedules.Precision() }

// timesOf returns the time of the due firing whose run has the id runID; empty without one.
func timesOf(j job.Job, due []job.Firing, runID string) (times []time.Time) {
	for _, f := range due {
		if run.FiringID(j.ID, f.At) == runID {
			times = append(times, f.At)
		}
	}
	return times
}

// fire commits firings together with the job as it is after them, and performs their effects.
// It returns the skipped firings, whose actions it leaves to the caller.
func (s *Firing) fire(ctx context.Context, after job.Job, due []job.Firing, now time.Time) (skipped []run.Decision, err error) {
	decisions, writes := make([]run.Decision, len(due)), make([]port.Write, len(due))
	for i, f := range due {
		d, err := s.creation(ctx, after, f, now)
		if err != nil {
			return nil, err
		}
		decisions[i], writes[i] = d, port.WriteOf(d)
	}
	if err := s.store.FireJob(ctx, after, writes...); err != nil {
		return nil, err
	}
	for i, d := range decisions {
		s.log.LogAttrs(ctx, slog.LevelInfo, "job fired", append(about.Run(&d.Run), slog.String("trigger", string(d.Run.Trigger)),
			slog.Bool("skipped", d.Run.Skipped), slog.Int64("late_ms", now.Sub(due[i].At).Milliseconds()))...)
		s.committed(ctx, &d)
	}
	for _, d := range decisions {
		d.Run.Version = 1
		s.act(ctx, &d.Run, d.Effects, nil)
		if d.Run.Skipped {
			skipped = append(skipped, d)
		}
	}
	return skipped, nil
}

// creation returns the decision that creates the run of a firing. The run is skipped if the
// firing was missed or is refused.
func (s *Firing) creation(ctx context.Context, j job.Job, f job.Firing, now time.Time) (run.Decision, error) {
	r := s.host.NewRun(j, s.policy, nil, nil, spec.Override{})
	r.ID = run.FiringID(j.ID, f.At)
	r.TaskID = run.FiringTaskID(r.Ref(), f.At)
	r.CorrelationID = r.TaskID
	r.Trigger, r.ScheduledAt, r.FiredAt, r.Missed = f.Trigger, f.At, now, f.Skipped
	if r.Missed == nil {
		var err error
		if r.Missed, err = s.refused(ctx, &r); err != nil {
			return run.Decision{}, err
		}
	}
	if r.Missed != nil {
		return run.NewSkipped(r, now), nil
	}
	if f.InTurn {
		r = r.InTurn()
	}
	return run.New(r, now), nil
}

// refused returns the reason that the run of a firing must be skipped: it lacks the scope exec,
// or cannot join its pool. It returns nil if the run can join.
func (s *Lifecycle) refused(ctx context.Context, r *run.Run) (*run.Missed, error) {
	missed := run.Missed{Reason: run.SkipNoPool, Count: 1, Until: r.ScheduledAt}
	if s.host.NeedsExec(r.Work) && !r.Exec {
		missed.Reason = run.SkipNoExec
		return &missed, nil
	}
	pool, err := s.pools.ForNewRun(ctx, r.Tenant, r.Slot.Pool, r.Work.Kind)
	if err == nil {
		missed.Reason, r.Slot.Pool = run.SkipQueueFull, pool.ID
		if r.HasParent() {
			pool.QueueLimit = (pool.QueueLimit + 1) / 2 // children leave room for other runs
		}
		err = s.queue.Admit(ctx, pool, r.ID)
	}
	switch f, refused := errors.AsType[*fault.Fault](err); {
	case err == nil:
		return nil, nil //nolint:nilnil // it can join
	case refused && (f.Code == fault.Unprocessable || f.Code == fault.AdmissionReject):
		return &missed, nil
	}
	return nil, err
}

// Wake sets or removes the wake-up of a stored job.
func (s *Firing) Wake(ctx context.Context, j job.Job) error {
	if j.WakeAt.IsZero() {
		return s.schedules.Remove(ctx, j.Ref())
	}
	return s.schedules.Set(ctx, j.Ref(), j.WakeAt)
}

// Changed sets the wake-up of a job after its commit, or removes it if WakeAt is zero. The
// sweep fires a job whose wake-up could not be set.
func (s *Firing) Changed(ctx context.Context, j job.Job) {
	if err := s.inBudget(ctx, func(ctx context.Context) error { return s.Wake(ctx, j) }); err != nil {
		s.log.WarnContext(ctx, "cannot set the wake-up of a job; a sweep fires it", "job_id", j.ID, "error", err.Error())
	}
}

// sweepJobs fires the jobs whose wake-up was lost. Those are the jobs that are overdue by more
// than job.WakeSlack minus early. For a job that is not due yet, Fire only sets the wake-up again.
func (s *Sweeper) sweepJobs(ctx context.Context, early time.Duration) error {
	by := s.now().Add(early - job.WakeSlack)
	return s.parts.EachRef(ctx, "jobs", func(after string) ([]run.Ref, string, error) {
		due, next, err := s.store.JobsDue(ctx, by, after, sweepPage)
		if err != nil {
			err = fmt.Errorf("cannot read the overdue jobs: %w", err)
		}
		refs := make([]run.Ref, len(due))
		for i, ref := range due {
			refs[i] = run.Ref(ref) // EachRef knows tenants and ids only
		}
		return refs, next, err
	}, func(limited context.Context, ref run.Ref) error { return s.firing.Fire(limited, job.Ref(ref)) })
}
