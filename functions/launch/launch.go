// Package launch handles the state ContainerCreating of a run: it makes the machine
// of an attempt, whose name is committed before. Repeated, it adopts the machine
// that is there.
package launch

import (
	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/run"
)

// Handler handles that state.
func Handler(svc *orchestrator.Service) lambdakit.TaskFunc {
	return lambdakit.Steps(map[run.Step]lambdakit.Step{
		run.StepContainerCreating: lambdakit.Waiting(svc.Launch),
	})
}
