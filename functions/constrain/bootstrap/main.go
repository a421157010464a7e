// The function constrain of the run's state machine.
package main

import (
	"github.com/sortie-dev/sortie/functions/constrain"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/executions"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/store"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("constrain")
	ports := p.Ports()
	ports.Store, ports.Executions = store.New(p), executions.New(p)
	p.ServeTask(constrain.Handler(orchestrator.New(ports, p.Settings())))
}
