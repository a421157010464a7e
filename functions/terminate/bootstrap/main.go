// The function terminate of the run's state machine.
package main

import (
	"github.com/sortie-dev/sortie/functions/terminate"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/executions"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/outputs"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/runner"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/store"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("terminate")
	ports := p.Ports()
	ports.Store, ports.Executions, ports.Runner = store.New(p), executions.New(p), runner.New(p)
	ports.Outputs, _ = outputs.New(p)
	p.ServeTask(terminate.Handler(orchestrator.New(ports, p.Settings())))
}
