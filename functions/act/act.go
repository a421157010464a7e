// Package act handles the states ActionRunning and ActionWaiting of a run: it does
// what the job wants done about a violated constraint, and waits where that means
// to wait. It may be repeated.
package act

import (
	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/run"
)

// Handler handles both states.
func Handler(svc *orchestrator.Service) lambdakit.TaskFunc {
	return lambdakit.Steps(map[run.Step]lambdakit.Step{
		run.StepActionRunning: lambdakit.Routing(svc.Act),
		run.StepActionWaiting: lambdakit.Waiting(svc.AwaitAction),
	})
}
