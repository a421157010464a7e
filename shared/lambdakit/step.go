package lambdakit

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/run"
)

// Step does the work of one state of the run's state machine.
type Step func(ctx context.Context, in orchestrator.StepInput) (any, error)

// Routing is the step of a plain Task: its output says where the execution goes.
func Routing(f func(context.Context, orchestrator.StepInput) (run.Route, error)) Step {
	return func(ctx context.Context, in orchestrator.StepInput) (any, error) { return f(ctx, in) }
}

// Waiting is the step of a token state: it stores the token, and whoever
// completes that says where the execution goes. Its own output, an empty
// object, is read by nobody.
func Waiting(f func(context.Context, orchestrator.StepInput) error) Step {
	return func(ctx context.Context, in orchestrator.StepInput) (any, error) {
		if in.Token == "" {
			return nil, InvalidInput{errors.New("the state waits for a token, and the input has none")}
		}
		return struct{}{}, f(ctx, in)
	}
}

// Steps is the function of a handler that several states call: the input's step
// says which one. A step that is not in the table is an InvalidInput.
func Steps(steps map[run.Step]Step) TaskFunc {
	return Task(func(ctx context.Context, in orchestrator.StepInput) (any, error) {
		step, known := steps[in.Step]
		switch {
		case in.Tenant == "" || in.ID == "" || in.Execution == "":
			return nil, InvalidInput{errors.New("tenant, runId and execution are needed")}
		case !known:
			return nil, InvalidInput{fmt.Errorf("this function does not handle the step %q", in.Step)}
		}
		return step(ctx, in)
	})
}
