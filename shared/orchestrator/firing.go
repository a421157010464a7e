package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/job"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Firing creates the runs of scheduled jobs.
type Firing struct {
	*Lifecycle
	schedules port.Schedules
	outputs   port.Outputs
	hex       Hex
	policy    run.Policy
}

// NewFiring returns Firing with the configured default policy. The input of programs is
// stored in outputs.
func NewFiring(life *Lifecycle, schedules port.Schedules, outputs port.Outputs, hex Hex, config Config) *Firing {
	return &Firing{life, schedules, outputs, hex, config.Policy}
}

// Fire commits the firings of a job that are due, starts their executions and sets the
// next wake-up. It may be repeated and called at any time: a firing is committed with
// the job's next one, once. A job that does not exist loses its wake-up.
func (s *Firing) Fire(ctx context.Context, ref job.Ref) error {
	ctx = WithEffectBudget(ctx)
	var done []time.Time
	for range commitTries {
		j, err := s.store.LoadJob(ctx, ref.Tenant, ref.ID)
		if errors.Is(err, port.ErrNotFound) {
			return s.schedules.Remove(ctx, ref)
		}
		if err != nil {
			return fmt.Errorf("cannot read job %s: %w", ref.ID, err)
		}
		now := s.now()
		after, due := j.Fire(now, port.MaxFirings, done...)
		if len(due) == 0 && after.NextAt.Equal(j.NextAt) {
			return s.Wake(ctx, j)
		}
		err = s.fire(ctx, after, due, now)
		if conflict, taken := errors.AsType[*port.Conflict](err); taken {
			done = append(done, timesOf(after, due, conflict.Ref.ID)...)
		} else if err != nil && !errors.Is(err, port.ErrConflict) {
			return fmt.Errorf("cannot fire job %s: %w", ref.ID, err)
		}
	}
	return fault.New(fault.Unavailable, "too many concurrent changes of job %s; retry", ref.ID)
}

// timesOf returns the time of the firing whose run has an id.
func timesOf(j job.Job, due []job.Firing, runID string) (times []time.Time) {
	for _, f := range due {
		if run.FiringID(j.ID, f.At) == runID {
			times = append(times, f.At)
		}
	}
	return times
}

// fire commits firings with the job after them, and acts on their effects.
func (s *Firing) fire(ctx context.Context, after job.Job, due []job.Firing, now time.Time) error {
	decisions, writes := make([]run.Decision, len(due)), make([]port.Write, len(due))
	for i, f := range due {
		d, err := s.creation(ctx, after, f, now)
		if err != nil {
			return err
		}
		decisions[i], writes[i] = d, port.WriteOf(d)
	}
	if err := s.store.FireJob(ctx, after, writes...); err != nil {
		return err
	}
	for i, d := range decisions {
		d.Run.Version = 1
		s.log.InfoContext(ctx, "job fired", "job_id", after.ID, "scheduled_at", due[i].At, "run_id", d.Run.ID,
			"trigger", d.Run.Trigger, "skipped", d.Run.Skipped, "late_ms", now.Sub(due[i].At).Milliseconds())
		s.committed(ctx, d)
	}
	for _, d := range decisions {
		d.Run.Version = 1
		s.act(ctx, d.Run, d.Effects)
	}
	return nil
}

// creation returns the creation of a firing's run, whose input it stores.
func (s *Firing) creation(ctx context.Context, j job.Job, f job.Firing, now time.Time) (run.Decision, error) {
	r := j.Definition.Run(s.policy)
	r.Tenant, r.Workspace, r.CorrelationID = j.Tenant, cmp.Or(j.Workspace, j.Tenant), s.correlationID()
	r.ID, r.JobID, r.JobVersion = run.FiringID(j.ID, f.At), j.ID, j.Version
	r.TaskID = run.FiringTaskID(r.Ref(), f.At)
	r.Trigger, r.ScheduledAt, r.FiredAt, r.Missed = f.Trigger, f.At, now, f.Skipped
	if f.Skipped != nil {
		return run.NewSkipped(r, now), nil
	}
	if input := j.Definition.Input; input != "" {
		program := *r.Work.Program
		program.Input = &run.Input{Key: limit.InputKey(r.Tenant, r.TaskID), Size: int64(len(input))}
		if err := s.outputs.Put(ctx, port.Accepted, program.Input.Key, inputType, []byte(input)); err != nil {
			return run.Decision{}, fmt.Errorf("cannot store the input: %w", err)
		}
		r.Work.Program = &program
	}
	return run.New(r, now), nil
}

// correlationID returns a UUID of version 4.
func (s *Firing) correlationID() string {
	h := s.hex(16)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
}

// Wake sets or removes the wake-up of a stored job.
func (s *Firing) Wake(ctx context.Context, j job.Job) error {
	if j.WakeAt.IsZero() {
		return s.schedules.Remove(ctx, j.Ref())
	}
	return s.schedules.Set(ctx, j.Ref(), j.WakeAt)
}

// changed sets the wake-up of a job after its commit; without WakeAt it has none. The
// sweep fires a job whose wake-up could not be set.
func (s *Firing) changed(ctx context.Context, j job.Job) {
	if err := s.inBudget(ctx, func(ctx context.Context) error { return s.Wake(ctx, j) }); err != nil {
		s.log.WarnContext(ctx, "cannot set the wake-up of a job; a sweep fires it", "job_id", j.ID, "error", err.Error())
	}
}

// wakeSlack is how long after its wake-up a job is overdue: timers promise the minute.
const wakeSlack = 90 * time.Second

// sweepJobs fires the jobs whose wake-up was lost. Early jobs have their wake-up set
// again.
func (s *Sweeper) sweepJobs(ctx context.Context, early time.Duration) error {
	by := s.now().Add(early - wakeSlack)
	return s.sweepRefs(ctx, "jobs", func(after string) ([]run.Ref, string, error) {
		due, next, err := s.store.JobsDue(ctx, by, after, sweepPage)
		if err != nil {
			err = fmt.Errorf("cannot read the overdue jobs: %w", err)
		}
		refs := make([]run.Ref, len(due))
		for i, ref := range due {
			refs[i] = run.Ref(ref) // sweepRefs knows tenants and ids only
		}
		return refs, next, err
	}, func(limited context.Context, ref run.Ref) error { return s.firing.Fire(limited, job.Ref(ref)) })
}
