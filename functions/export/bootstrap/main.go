// The function export serves the route POST /export/{format}.
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
	requests := orchestrator.NewRequests(deployed.Committing(p, config), p.Hex, orchestrator.LeaveToSweep{}, config)
	p.ServeHTTP(export.Routes(requests, deployed.Webhooks(p, deployed.Store(p), config)), deployed.ClientTokens(p))
}
