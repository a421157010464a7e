// Package supervise handles the states Running, Cancelling and Reconciling of a run:
// it waits for the end of an attempt, asks its worker to end, and finds out how a
// run stands whose state ran out of time. It may be repeated.
package supervise

import (
	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/run"
)

// Handler handles the three states.
func Handler(svc *orchestrator.Service) lambdakit.TaskFunc {
	return lambdakit.Steps(map[run.Step]lambdakit.Step{
		run.StepRunning:     lambdakit.Waiting(svc.Supervise),
		run.StepCancelling:  lambdakit.Waiting(svc.StopWorker),
		run.StepReconciling: lambdakit.Routing(svc.Reconcile),
	})
}
