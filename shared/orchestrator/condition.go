package orchestrator

import (
	"context"

	"github.com/sortie-dev/sortie/shared/run"
)

// Conditions handles the states of a job's constraints and actions.
type Conditions struct{ *Lifecycle }

// NewConditions returns the handlers of ConditionRunning, ActionRunning and
// ActionWaiting.
func NewConditions(life *Lifecycle) *Conditions { return &Conditions{life} }

// Constrain handles the state ConditionRunning: it checks the constraints of the
// run's job in one decision. A run without a job has none.
func (s *Conditions) Constrain(ctx context.Context, in StepInput) (run.Route, error) {
	return s.plainStep(ctx, in, is(run.Checked{}))
}

// Act handles the state ActionRunning: it runs the job's action for a violated
// constraint. A run without a job has none.
func (s *Conditions) Act(ctx context.Context, in StepInput) (run.Route, error) {
	return s.plainStep(ctx, in, is(run.ActionStarted{}))
}

// AwaitAction handles the state ActionWaiting: it stores the token, which the
// commit that ends the wait completes.
func (s *Conditions) AwaitAction(ctx context.Context, in StepInput) error { return s.wait(ctx, in) }
