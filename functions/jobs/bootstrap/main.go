// The function jobs serves the routes of /v1/jobs, the schema of job documents, and the routes
// of /v1/runs that read definitions: the start, the plan and the explanation of a run.
package main

import (
	"slices"

	"github.com/sortie-dev/sortie/functions/jobs"
	runroutes "github.com/sortie-dev/sortie/functions/runs"
	"github.com/sortie-dev/sortie/shared/app"
	stored "github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

func main() {
	p := process.Start("jobs")
	config := deployed.JobSettings(p)
	programs := deployed.Runs(p, config)
	definitions := app.Definitions(programs, config)
	explanations := stored.NewExplanations(definitions)
	firing := runs.NewFiring(programs.Lifecycle, deployed.Schedules(p))
	p.ServeHTTP(slices.Concat(
		jobs.Routes(stored.New(definitions, firing, api.JobDocument), runs.NewQueries(programs.Records), explanations),
		runroutes.Routes(definitions, explanations), runroutes.ChildRoutes(app.ChildReader(programs.Records)),
	), deployed.ClientTokens(p))
}
