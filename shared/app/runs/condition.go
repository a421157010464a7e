package runs

import (
	"context"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Conditions handles the state ConditionRunning, which evaluates a job's constraints.
type Conditions struct {
	*Lifecycle
	hooks Hooks
}

// NewConditions returns the handler of ConditionRunning.
func NewConditions(life *Lifecycle, hooks Hooks) *Conditions { return &Conditions{life, hooks} }

// Constrain handles the state ConditionRunning: it checks all constraints of the run's job and
// takes the job's slot, in one decision. It may be repeated; the hook is then called again.
func (s *Conditions) Constrain(ctx context.Context, in StepInput) (run.Route, error) {
	r, done, err := s.begin(ctx, in)
	if err != nil {
		return run.Route{}, err
	}
	if done {
		return ended(r), nil
	}
	if c := r.Constraints; c != nil && c.PreRunHook != nil { // clients see the state during the hook's call
		if r, err = s.applyTo(ctx, r, in.visited(constantFact(run.CheckBegun{}))); err != nil {
			return run.Route{}, again(fmt.Errorf("cannot begin the check: %w", err))
		}
		if r.State != run.ConditionRunning {
			return run.RouteOf(r, s.now()), nil
		}
	}
	if r, err = s.evaluate(ctx, s.hooks, r, in); err != nil {
		return run.Route{}, again(fmt.Errorf("cannot evaluate the constraints: %w", err))
	}
	return run.RouteOf(r, s.now()), nil
}
