// The function jobs serves the routes of /v1/jobs and the schema of job documents.
package main

import (
	"github.com/sortie-dev/sortie/functions/jobs"
	"github.com/sortie-dev/sortie/shared/api"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("jobs")
	config := p.Settings()
	programs := deployed.Runs(p, config)
	definitions := orchestrator.NewDefinitions(programs, config)
	firing := orchestrator.NewFiring(programs.Lifecycle, deployed.Schedules(p))
	p.ServeHTTP(jobs.Routes(
		orchestrator.NewJobs(definitions, firing, api.JobDocument), orchestrator.NewQueries(programs.Records), orchestrator.NewExplanations(definitions),
	), deployed.ClientTokens(p))
}
