// The function export: the route POST /export/{format}.
package main

import (
	"github.com/sortie-dev/sortie/functions/export"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("export")
	config := p.Settings()
	records := orchestrator.NewRecords(deployed.Store(p), p.Clock(), p.Log)
	life := orchestrator.NewLifecycle(records, deployed.Executions(p), config)
	p.ServeHTTP(export.Routes(orchestrator.NewRequests(life, p.Hex, config)), deployed.ClientTokens(p))
}
