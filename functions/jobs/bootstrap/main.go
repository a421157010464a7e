// The function jobs: the routes of /v1/jobs and the schema of job documents.
package main

import (
	"github.com/sortie-dev/sortie/functions/jobs"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("jobs")
	config := p.Settings()
	records := orchestrator.NewRecords(deployed.Store(p), p.Clock(), p.Log)
	life := orchestrator.NewLifecycle(records, deployed.Executions(p), config)
	objects, _ := deployed.Outputs(p)
	firing := orchestrator.NewFiring(life, deployed.Schedules(p), objects, p.Hex, config)
	runs := orchestrator.NewRuns(orchestrator.NewRequests(life, p.Hex, config), objects)
	p.ServeHTTP(jobs.Routes(orchestrator.NewJobs(orchestrator.NewDefinitions(runs, config), firing), orchestrator.NewQueries(records)), deployed.ClientTokens(p))
}
