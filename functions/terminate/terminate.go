// Package terminate handles the state Terminating of a run: it sees the machine
// gone, verifies and keeps the output, and decides what comes of the run. It may
// be repeated, and asks for that while the machine is still there.
package terminate

import (
	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/run"
)

// Handler handles that state.
func Handler(svc *orchestrator.Service) lambdakit.TaskFunc {
	return lambdakit.Steps(map[run.Step]lambdakit.Step{
		run.StepTerminating: lambdakit.Routing(svc.Terminate),
	})
}
