package lambdakit

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Step handles one state of the run's state machine.
type Step func(ctx context.Context, in runs.StepInput) (any, error)

// Routing returns the step of a plain Task. Its output is the route to the next state.
func Routing(f func(context.Context, runs.StepInput) (run.Route, error)) Step {
	return func(ctx context.Context, in runs.StepInput) (any, error) { return f(ctx, in) }
}

// Waiting returns the step of a state that waits for a task token. The step stores the token.
// The output that later completes the token is the route to the next state. The state machine
// ignores the output of the step itself, an empty object.
func Waiting(f func(context.Context, runs.StepInput) error) Step {
	return func(ctx context.Context, in runs.StepInput) (any, error) {
		if in.Token == "" {
			return nil, InvalidInput{errors.New("missing token")}
		}
		return struct{}{}, f(ctx, in)
	}
}

// Steps returns a function that handles several states. The step in the input selects the
// handler. An unknown step is an InvalidInput.
func Steps(steps map[run.Step]Step) TaskFunc {
	return Task(func(ctx context.Context, in runs.StepInput) (any, error) {
		step, known := steps[in.Step]
		switch {
		case in.Tenant == "" || in.ID == "" || in.Execution == "":
			return nil, InvalidInput{errors.New("missing tenant, runId or execution")}
		case !known:
			return nil, InvalidInput{fmt.Errorf("unknown step %q of this function", in.Step)}
		}
		return step(ctx, in)
	})
}
