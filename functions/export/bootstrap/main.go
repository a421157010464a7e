// The function export serves the route POST /export/{format}.
package main

import (
	"github.com/sortie-dev/sortie/functions/export"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

func main() {
	p := process.Start("export")
	config := p.Settings()
	requests := runs.NewRequests(deployed.Committing(p, config), p.Hex, runs.LeaveToSweep{}, config)
	p.ServeHTTP(export.Routes(requests, deployed.Webhooks(p, deployed.Store(p), config)), deployed.ClientTokens(p))
}
