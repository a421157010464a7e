// The function runs serves the route POST /v1/runs.
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
	definitions := orchestrator.NewDefinitions(deployed.Runs(p, config), config)
	p.ServeHTTP(runs.Routes(definitions, orchestrator.NewExplanations(definitions)), deployed.ClientTokens(p))
}
