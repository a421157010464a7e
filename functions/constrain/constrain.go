// Package constrain handles the state ConditionRunning of a run: it checks the
// constraints of the run's job before its first attempt. It may be repeated.
package constrain

import (
	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/run"
)

// Handler handles that state.
func Handler(svc *orchestrator.Service) lambdakit.TaskFunc {
	return lambdakit.Steps(map[run.Step]lambdakit.Step{
		run.StepConditionRunning: lambdakit.Routing(svc.Constrain),
	})
}
