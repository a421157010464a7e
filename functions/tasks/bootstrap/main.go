// The function tasks serves the routes of /v1/tasks and of the API's description.
package main

import (
	"slices"

	"github.com/sortie-dev/sortie/functions/tasks"
	"github.com/sortie-dev/sortie/shared/app/logs"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/dispatching"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/runner"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("tasks")
	config, leave := p.Settings(), orchestrator.LeaveToSweep{}
	life := deployed.Lifecycle(p, leave, leave, dispatching.Calls(p), config)
	objects, bucket := deployed.Outputs(p)
	machines, store := runner.New(p), deployed.Store(p)
	requests := orchestrator.NewRequests(life, p.Hex, orchestrator.StreamsIn(deployed.Answers(p, store, config)), config)
	p.ServeStream(slices.Concat(tasks.Routes(
		orchestrator.NewQueries(life.Records), orchestrator.NewRuns(requests, objects),
		logs.New(orchestrator.NewTasks(life.Records), machines, objects, orchestrator.NewWorkerSecrets(bucket, deployed.Secrets(p)), p.Clock()),
		tasks.Keys{Tokens: deployed.Signer(p), Events: deployed.PublishedEventKeys(p, store)}, p.Version(),
	), tasks.ReportRoutes(orchestrator.NewMachineReports(orchestrator.NewMachines(life, machines))),
		tasks.ReadyRoutes(tasks.NewReadiness(tasks.RewriteReception(store), p.Clock()), p.Version()),
	), deployed.ClientTokens(p))
}
