// Package steps handles the states of a run's state machine.
//
// The table of Handlers is the only list of step functions. Each handles one or more states.
// All are in one program. A deployed function selects its handler by SORTIE_STEP. Step
// Functions may invoke a step more than once with the same input, so every handler is
// idempotent.
package steps

import (
	"maps"
	"slices"

	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
)

// Handlers returns the handler of each step function by the function's name.
func Handlers(s *app.System) map[string]lambdakit.TaskFunc {
	return map[string]lambdakit.TaskFunc{
		"admit": Admit(s.Admission), "constrain": Constrain(s.Conditions), "act": Act(s.Actions),
		"launch": Launch(s.Launches), "supervise": Supervise(s.Supervision), "terminate": Terminate(s.Termination),
	}
}

// Functions lists the names of the step functions, sorted.
func Functions() []string { return slices.Sorted(maps.Keys(Handlers(&app.System{}))) }

// Admit acquires a slot of the run's pool, or queues the run for one.
func Admit(s *runs.Admission) lambdakit.TaskFunc {
	return lambdakit.Steps(map[run.Step]lambdakit.Step{
		run.StepPending: lambdakit.Routing(s.Admit),
		run.StepQueued:  lambdakit.Waiting(s.AwaitSlot),
	})
}

// Constrain evaluates the job's constraints before the first attempt.
func Constrain(s *runs.Conditions) lambdakit.TaskFunc {
	return lambdakit.Steps(map[run.Step]lambdakit.Step{
		run.StepConditionRunning: lambdakit.Routing(s.Constrain),
	})
}

// Act runs the job's action for a violated constraint. If the action is a wait, it waits.
func Act(s *runs.Actions) lambdakit.TaskFunc {
	return lambdakit.Steps(map[run.Step]lambdakit.Step{
		run.StepActionRunning: lambdakit.Routing(s.Act),
		run.StepActionWaiting: lambdakit.Waiting(s.AwaitAction),
	})
}

// Launch creates the attempt's machine under a name that was committed before. It adopts an
// existing machine of that name.
func Launch(s *runs.Launches) lambdakit.TaskFunc {
	return lambdakit.Steps(map[run.Step]lambdakit.Step{
		run.StepContainerCreating: lambdakit.Waiting(s.Launch),
	})
}

// Supervise waits for the end of an attempt, asks a cancelled worker to stop, and
// reconciles a run whose state timed out or failed.
func Supervise(s *runs.Supervision) lambdakit.TaskFunc {
	return lambdakit.Steps(map[run.Step]lambdakit.Step{
		run.StepRunning:     lambdakit.Waiting(s.Supervise),
		run.StepCancelling:  lambdakit.Waiting(s.StopWorker),
		run.StepReconciling: lambdakit.Routing(s.Reconcile),
	})
}

// Terminate destroys the machine, verifies and accepts the output, and decides how
// the run continues. It returns TryAgain while the machine still exists.
func Terminate(s *runs.Termination) lambdakit.TaskFunc {
	return lambdakit.Steps(map[run.Step]lambdakit.Step{
		run.StepTerminating: lambdakit.Routing(s.Terminate),
	})
}
