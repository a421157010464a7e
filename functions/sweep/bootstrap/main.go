// The function sweep runs a sweep. A schedule invokes it, and so do executions that failed.
package main

import (
	"time"

	"github.com/sortie-dev/sortie/functions/sweep"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/dispatching"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/runner"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// expiryPause is a little less than five sweeps. DynamoDB bills each read of the sweep, even
// while no run is active.
const expiryPause = 4*time.Minute + 30*time.Second

func main() {
	p := process.Start("sweep")
	config := p.Settings()
	config.ExpiryPause = expiryPause
	records := orchestrator.NewRecords(deployed.Store(p), p.Clock(), p.Log)
	life := orchestrator.NewLifecycle(records, deployed.Executions(p), config)
	requests := orchestrator.NewRequests(life, p.Hex, config)
	orchestrator.NewActions(life, deployed.Hooks(p, config), requests.Triggered)
	orchestrator.CallDispatchers(life, dispatching.Caller(p))
	platforms := runner.New(p)
	machines := orchestrator.NewMachines(life, platforms)
	orchestrator.KeepReplicas(requests, platforms, config)
	objects, _ := deployed.Outputs(p)
	firing := orchestrator.NewFiring(life, deployed.Schedules(p))
	p.ServeEvent(sweep.Handler(orchestrator.NewSweeper(
		machines, orchestrator.NewOutputs(records, objects), orchestrator.NewArtifacts(records, objects, p.Hex, config), firing, deployed.Reception(p, records, config), p.Hex, config,
	)))
}
