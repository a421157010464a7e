// The function sweep runs a sweep, and polls the sensors of jobs. A schedule invokes it, and so do executions that failed.
package main

import (
	"time"

	"github.com/sortie-dev/sortie/functions/sweep"
	"github.com/sortie-dev/sortie/shared/adapter/tenantaws"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed/dispatching"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed/runner"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// expiryPause is a little less than five sweeps. DynamoDB bills each read of the sweep, even
// while no run is active.
const expiryPause = 4*time.Minute + 30*time.Second

func main() {
	p := process.Start("sweep")
	config := p.Settings().WithExpiryPause(expiryPause)
	platforms, store := runner.New(p), deployed.Store(p)
	life := runs.NewLifecycle(
		deployed.Records(p, store), deployed.Executions(p), runs.ActForJobs(deployed.Hooks(p, config), p.Hex, app.Children), app.KeepReplicas(platforms, p.Hex, config), dispatching.Calls(p), config,
	)
	objects, _ := deployed.Outputs(p)
	all := runs.NewRuns(runs.NewRequests(life, p.Hex, runs.LeaveToSweep{}, config), objects)
	p.ServeEvent(sweep.Handler(runs.NewSweeper(
		runs.NewMachines(life, platforms), runs.NewOutputs(life.Records, objects),
		deployed.Prompts(p, store, objects).Beside(deployed.Artifacts(p, store, objects, config)), runs.NewFiring(life, deployed.Schedules(p)),
		deployed.Reception(p, life.Records, config), runs.LeaveToDatabase{}, app.Drains(life, config), app.Warm(life, platforms, p.Hex, config), config,
	), app.Polls(all, deployed.Secrets(p), tenantaws.New(config.Hooks, nil), config)))
}
