package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Conditions handles the state of a job's constraints.
type Conditions struct {
	*Lifecycle
	hooks Hooks
}

// NewConditions returns the handler of ConditionRunning.
func NewConditions(life *Lifecycle, hooks Hooks) *Conditions { return &Conditions{life, hooks} }

// Constrain handles the state ConditionRunning: it checks all constraints of the run's
// job and takes the job's slot, in one decision. It may be repeated; a hook is then
// asked again.
func (s *Conditions) Constrain(ctx context.Context, in StepInput) (run.Route, error) {
	r, done, err := s.begin(ctx, in)
	if err != nil {
		return run.Route{}, err
	}
	if done {
		return ended(r), nil
	}
	if c := r.Constraints; c != nil && c.PreRunHook != nil { // clients see the state while the hook is asked
		if r, err = s.applyTo(ctx, r, in.visited(is(run.CheckBegun{}))); err != nil {
			return run.Route{}, again(fmt.Errorf("cannot begin the check: %w", err))
		}
		if r.State != run.ConditionRunning {
			return run.RouteOf(r, s.now()), nil
		}
	}
	checked, err := s.check(ctx, r)
	if err != nil {
		return run.Route{}, again(err)
	}
	after, err := s.applyTo(ctx, r, in.visited(is(checked)))
	if missing, ok := errors.AsType[*port.NoSlot](err); ok && missing.Pool == run.JobPool(r.JobID) {
		checked.Violations = slices.Insert(checked.Violations, 0, run.ConstraintViolation{
			Constraint: run.MaxConcurrentRuns, At: s.now(),
			Message: fmt.Sprintf("all %d slots of the job are held or queued for", r.Constraints.MaxConcurrentRuns),
		})
		after, err = s.applyTo(ctx, r, in.visited(is(checked)))
	}
	if err != nil {
		return run.Route{}, again(fmt.Errorf("cannot commit the constraints: %w", err))
	}
	return run.RouteOf(after, s.now()), nil
}

// check evaluates every constraint before the run but the job's slot, which the commit
// takes.
func (s *Conditions) check(ctx context.Context, r run.Run) (checked run.Checked, err error) {
	c := r.Constraints
	if c == nil {
		return checked, nil
	}
	violated := func(name run.Constraint, format string, args ...any) {
		checked.Violations = append(checked.Violations, run.ConstraintViolation{
			Constraint: name, Message: fmt.Sprintf(format, args...), At: s.now(),
		})
	}
	if c.RequirePreviousSuccess && r.JobID != "" {
		last, err := s.store.LastResult(ctx, r.Tenant, r.JobID)
		switch {
		case errors.Is(err, port.ErrNotFound):
		case err != nil:
			return checked, fmt.Errorf("cannot read the last result of job %s: %w", r.JobID, err)
		case !last.Success:
			violated(run.RequirePreviousSuccess, "run %s failed at %s", last.RunID, last.EndedAt.Format(time.RFC3339))
		}
	}
	if late := s.now().Sub(r.ScheduledAt); c.CatchUpWindow > 0 && !r.ScheduledAt.IsZero() && late > c.CatchUpWindow {
		violated(run.CatchUpWindow, "the run is %s late, want at most %s", late.Round(time.Second), c.CatchUpWindow)
	}
	if c.PreRunHook != nil {
		answer, err := s.hooks.Ask(ctx, r, *c.PreRunHook, run.PreRunHook)
		if err != nil {
			return checked, fmt.Errorf("cannot ask the hook: %w", err)
		}
		if v, violated := c.PreRunHook.Violation(run.PreRunHook, answer, s.now()); violated {
			checked.Violations = append(checked.Violations, v)
		} else if answer.Unavailable {
			s.warn(ctx, r, "the hook before the run cannot be reached; the job allows that", errors.New(answer.Detail))
		}
	}
	return checked, nil
}
