// The function fire: the wake-ups of jobs invoke it.
package main

import (
	"github.com/sortie-dev/sortie/functions/fire"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("fire")
	config := p.Settings()
	life := orchestrator.NewLifecycle(orchestrator.NewRecords(deployed.Store(p), p.Clock(), p.Log), deployed.Executions(p), config)
	objects, _ := deployed.Outputs(p)
	p.ServeEvent(fire.Handler(orchestrator.NewFiring(life, deployed.Schedules(p), objects, p.Hex, config)))
}
