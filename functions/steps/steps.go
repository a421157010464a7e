// Package steps handles the states of a run's state machine.
//
// The table of Handlers is the one list of step functions: each handles one or
// more states. All are in one program; a deployed function selects its handler by
// SORTIE_STEP. Step Functions may invoke a step more than once with the same input,
// so every handler is idempotent.
package steps

import (
	"maps"
	"slices"

	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/run"
)

// Handlers returns the handler of each step function by the function's name.
func Handlers(svc *orchestrator.Service) map[string]lambdakit.TaskFunc {
	return map[string]lambdakit.TaskFunc{
		// admit acquires a slot of the run's pool, or queues the run for one.
		"admit": lambdakit.Steps(map[run.Step]lambdakit.Step{
			run.StepPending: lambdakit.Routing(svc.Admit),
			run.StepQueued:  lambdakit.Waiting(svc.AwaitSlot),
		}),
		// constrain evaluates the job's constraints before the first attempt.
		"constrain": lambdakit.Steps(map[run.Step]lambdakit.Step{
			run.StepConditionRunning: lambdakit.Routing(svc.Constrain),
		}),
		// act executes the job's action for a violated constraint, and waits where
		// the action is to wait.
		"act": lambdakit.Steps(map[run.Step]lambdakit.Step{
			run.StepActionRunning: lambdakit.Routing(svc.Act),
			run.StepActionWaiting: lambdakit.Waiting(svc.AwaitAction),
		}),
		// launch creates the attempt's machine under a name that was committed
		// before. If a machine of that name exists, launch adopts it.
		"launch": lambdakit.Steps(map[run.Step]lambdakit.Step{
			run.StepContainerCreating: lambdakit.Waiting(svc.Launch),
		}),
		// supervise waits for the end of an attempt, asks a cancelled worker to
		// stop, and reconciles a run whose state timed out or failed.
		"supervise": lambdakit.Steps(map[run.Step]lambdakit.Step{
			run.StepRunning:     lambdakit.Waiting(svc.Supervise),
			run.StepCancelling:  lambdakit.Waiting(svc.StopWorker),
			run.StepReconciling: lambdakit.Routing(svc.Reconcile),
		}),
		// terminate destroys the machine, verifies and accepts the output, and
		// decides how the run continues. It returns TryAgain while the machine
		// still exists.
		"terminate": lambdakit.Steps(map[run.Step]lambdakit.Step{
			run.StepTerminating: lambdakit.Routing(svc.Terminate),
		}),
	}
}

// Functions lists the names of the step functions, sorted.
func Functions() []string { return slices.Sorted(maps.Keys(Handlers(nil))) }
