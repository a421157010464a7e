// The function sweep: a schedule invokes it, and so do executions that failed.
package main

import (
	"github.com/sortie-dev/sortie/functions/sweep"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/runner"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("sweep")
	config := p.Settings()
	records := orchestrator.NewRecords(deployed.Store(p), p.Clock(), p.Log)
	life := orchestrator.NewLifecycle(records, deployed.Executions(p), config)
	machines := orchestrator.NewMachines(life, runner.New(p))
	objects, _ := deployed.Outputs(p)
	p.ServeEvent(sweep.Handler(orchestrator.NewSweeper(
		machines, orchestrator.NewOutputs(records, objects), deployed.Reception(p, records, config), config,
	)))
}
