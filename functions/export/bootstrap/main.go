// The function export: the front door of POST /export/{format}.
package main

import (
	"github.com/sortie-dev/sortie/functions/export"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("export")
	ports := p.Ports()
	ports.Store, ports.Executions = deployed.Store(p), deployed.Executions(p)
	p.ServeHTTP(export.Routes(orchestrator.New(ports, p.Settings())), deployed.ClientTokens(p))
}
