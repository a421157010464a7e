// The function runs: the route POST /v1/runs.
package main

import (
	"github.com/sortie-dev/sortie/functions/runs"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("runs")
	config := p.Settings()
	records := orchestrator.NewRecords(deployed.Store(p), p.Clock(), p.Log)
	life := orchestrator.NewLifecycle(records, deployed.Executions(p), config)
	objects, _ := deployed.Outputs(p)
	programs := orchestrator.NewRuns(orchestrator.NewRequests(life, p.Hex, config), objects)
	p.ServeHTTP(runs.Routes(orchestrator.NewDefinitions(programs, config)), deployed.ClientTokens(p))
}
