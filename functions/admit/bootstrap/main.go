// The function admit of the run's state machine.
package main

import (
	"github.com/sortie-dev/sortie/functions/admit"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/executions"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/store"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("admit")
	ports := p.Ports()
	ports.Store, ports.Executions = store.New(p), executions.New(p)
	p.ServeTask(admit.Handler(orchestrator.New(ports, p.Settings())))
}
