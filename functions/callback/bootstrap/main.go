// The function callback: the front door of everything that workers call.
package main

import (
	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("callback")
	ports := p.Ports()
	ports.Store, ports.Executions, ports.Signer = deployed.Store(p), deployed.Executions(p), deployed.Signer(p)
	ports.Outputs, _ = deployed.Outputs(p)
	p.ServeHTTP(callback.Routes(orchestrator.New(ports, p.Settings())), nil)
}
