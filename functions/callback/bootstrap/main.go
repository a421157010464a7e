// The function callback: the front door of everything that workers call.
package main

import (
	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/executions"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/outputs"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/signer"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/store"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("callback")
	ports := p.Ports()
	ports.Store, ports.Executions, ports.Signer = store.New(p), executions.New(p), signer.New(p)
	ports.Outputs, _ = outputs.New(p)
	p.ServeHTTP(callback.Routes(orchestrator.New(ports, p.Settings())), nil)
}
