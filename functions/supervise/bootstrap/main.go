// The function supervise of the run's state machine.
package main

import (
	"github.com/sortie-dev/sortie/functions/supervise"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/executions"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/runner"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/store"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("supervise")
	ports := p.Ports()
	ports.Store, ports.Executions, ports.Runner = store.New(p), executions.New(p), runner.New(p)
	p.ServeTask(supervise.Handler(orchestrator.New(ports, p.Settings())))
}
