// The function act of the run's state machine.
package main

import (
	"github.com/sortie-dev/sortie/functions/act"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/executions"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/store"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("act")
	ports := p.Ports()
	ports.Store, ports.Executions = store.New(p), executions.New(p)
	p.ServeTask(act.Handler(orchestrator.New(ports, p.Settings())))
}
