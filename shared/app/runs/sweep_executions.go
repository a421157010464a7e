package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// sweepDue checks the executions that should have acted on their record. The next
// check of one that fails is delayed.
func (s *Sweeper) sweepDue(ctx context.Context, early time.Duration) error {
	now := s.now().Add(early)
	return s.parts.EachRef(ctx, "due", func(after string) ([]run.Ref, string, error) {
		refs, next, err := s.store.Due(ctx, now, after, sweepPage)
		if err != nil {
			err = fmt.Errorf("cannot read the overdue runs: %w", err)
		}
		return refs, next, err
	}, func(limited context.Context, ref run.Ref) error {
		err := s.orDelay(ctx, ref, s.checkExecution(limited, ref), run.RepairFailed{})
		if untaken, ok := errors.AsType[*hook.Untaken](err); ok { // an address of a user has failed
			s.log.InfoContext(ctx, "an action of the job failed and will be retried", "run_id", ref.ID, "error", untaken)
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot reconcile run %s: %w", ref.ID, err)
		}
		return nil
	})
}

// orDelay returns the error of the work on a run, and commits failed, which delays the
// next try, unless ctx ended. A run that no longer exists needs no work.
func (s *Sweeper) orDelay(ctx context.Context, ref run.Ref, err error, failed run.Fact) error {
	if err == nil || errors.Is(err, port.ErrNotFound) {
		return nil
	}
	if ctx.Err() == nil {
		_, delayed := s.apply(ctx, ref, constantFact(failed))
		err = errors.Join(err, delayed)
	}
	return err
}

// checkExecution repeats pending effects, starts an execution that never started,
// and finds executions that ended without their run.
func (s *Sweeper) checkExecution(ctx context.Context, ref run.Ref) error {
	r, err := s.store.Load(ctx, ref)
	if err != nil {
		return err
	}
	if !r.HasExecution() {
		s.tasks.Resume(ctx, r)
		return nil
	}
	var acts []error
	for _, e := range r.Execution.Pending {
		err := s.effect(ctx, r, e)
		if err != nil && !afterCommit(e) {
			return err
		}
		acts = append(acts, err) // one address does not delay the actions on others
	}
	if r.Fan != nil && r.State == run.Running {
		acts = append(acts, s.reconcileChildren(ctx, r))
	}
	untaken := errors.Join(acts...)
	if untaken != nil && (r.State.Terminal() || r.Execution.Start == 0) {
		return untaken
	}
	if r.Execution.Start == 0 {
		return nil // it has no execution; each of its actions has recorded its end
	}
	execution, err := s.executions.Describe(ctx, run.ExecutionName(ref, r.Execution.Start))
	switch {
	case errors.Is(err, port.ErrNotFound):
		return s.effect(ctx, r, run.Effect{Kind: run.EffectStart, Execution: run.ExecutionName(ref, r.Execution.Start)})
	case err != nil:
		return fmt.Errorf("cannot describe the execution: %w", err)
	case execution.Status == port.ExecutionRunning && untaken != nil:
		return untaken
	case execution.Status == port.ExecutionRunning && len(r.Execution.Pending) == 0 && s.now().Before(r.Execution.ActBy):
		return nil // it was checked early and has time left
	case execution.Status == port.ExecutionRunning || r.State.Terminal():
		_, err = s.applyTo(ctx, r, constantFact(run.ExecutionChecked{Done: execution.Status != port.ExecutionRunning}))
		return err
	}
	return s.replaceExecution(ctx, r, execution)
}

// ExecutionEnded checks a run whose execution is reported to have ended. If it ended without
// its run, it is replaced at once; the sweep would wait for ActBy. Reports may be repeated. One
// about an execution that was replaced, or about a run that has ended or expired, is ignored.
// Fault: Unavailable while the execution is still shown as running.
func (s *Sweeper) ExecutionEnded(ctx context.Context, ref run.Ref, name string) error {
	r, err := s.store.Load(ctx, ref)
	if errors.Is(err, port.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot load the run: %w", err)
	}
	if r.State.Terminal() || name != run.ExecutionName(ref, r.Execution.Start) {
		return nil
	}
	execution, err := s.executions.Describe(ctx, name)
	switch {
	case errors.Is(err, port.ErrNotFound), err == nil && execution.Status == port.ExecutionRunning:
		return fault.New(fault.Unavailable, "the end of execution %s is not visible yet", name)
	case err != nil:
		return fmt.Errorf("cannot describe the execution: %w", err)
	}
	return s.replaceExecution(ctx, r, execution)
}

// replaceExecution starts a new execution of a run, or orphans the run. execution is the
// execution of the start in r; it ended before the run did.
func (s *Sweeper) replaceExecution(ctx context.Context, r run.Run, execution port.Execution) error {
	cause := string(execution.Status)
	if execution.Error != "" {
		cause += ": " + execution.Error
	}
	r, err := s.applyTo(ctx, r, constantFact(run.Restarted{Start: r.Execution.Start, Cause: cause}))
	if err != nil || r.State != run.Orphaned {
		return err
	}
	_, err = s.outputs.clearLost(ctx, r)
	return err
}
