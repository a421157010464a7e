// Package admit handles the states Pending and Queued of a run: it takes a slot
// of the run's pool, or waits in line for one. It may be repeated.
package admit

import (
	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/run"
)

// Handler handles both states.
func Handler(svc *orchestrator.Service) lambdakit.TaskFunc {
	return lambdakit.Steps(map[run.Step]lambdakit.Step{
		run.StepPending: lambdakit.Routing(svc.Admit),
		run.StepQueued:  lambdakit.Waiting(svc.AwaitSlot),
	})
}
