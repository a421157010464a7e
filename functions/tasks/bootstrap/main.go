// The function tasks serves the routes of /v1/tasks and of the API's description.
package main

import (
	"slices"

	"github.com/sortie-dev/sortie/functions/tasks"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/logs"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed/dispatching"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed/runner"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

func main() {
	p := process.Start("tasks")
	config, leave := p.Settings(), runs.LeaveToSweep{}
	life := deployed.Lifecycle(p, runs.StartChildren(p.Hex, app.Children), leave, dispatching.Calls(p), config)
	objects, bucket := deployed.Outputs(p)
	machines, store := runner.New(p), deployed.Store(p)
	requests := runs.NewRequests(life, p.Hex, runs.StreamsIn(deployed.Answers(p, store, config)), config)
	p.ServeStream(slices.Concat(tasks.Routes(
		runs.NewQueries(life.Records), runs.NewRuns(requests, objects),
		logs.New(runs.NewTasks(life.Records), machines, objects, grants.NewWorkerSecrets(bucket, deployed.Secrets(p)), p.Clock()),
		tasks.Keys{Tokens: deployed.Signer(p), Events: deployed.PublishedEventKeys(p, store)}, p.Version(),
	), tasks.RedeliveryRoutes(runs.NewQueries(life.Records), app.Redeliveries(requests)), tasks.ReportRoutes(runs.NewMachineReports(runs.NewMachines(life, machines))),
		tasks.ReadyRoutes(tasks.NewReadiness(tasks.RewriteReception(store), p.Clock()), p.Version()),
	), deployed.ClientTokens(p))
}
