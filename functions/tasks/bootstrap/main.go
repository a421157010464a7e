// The function tasks: the routes of /v1/tasks and of the API's description.
package main

import (
	"github.com/sortie-dev/sortie/functions/tasks"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/runner"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("tasks")
	config := p.Settings()
	records := orchestrator.NewRecords(deployed.Store(p), p.Clock(), p.Log)
	life := orchestrator.NewLifecycle(records, deployed.Executions(p), config)
	objects, bucket := deployed.Outputs(p)
	p.ServeHTTP(tasks.Routes(
		orchestrator.NewQueries(records), orchestrator.NewRuns(orchestrator.NewRequests(life, p.Hex, config), objects),
		orchestrator.NewLogs(records, runner.New(p), objects, bucket, deployed.Secrets(p)), deployed.Signer(p), p.Version(),
	), deployed.ClientTokens(p))
}
