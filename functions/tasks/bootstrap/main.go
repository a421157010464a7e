// The function tasks: the front door of /v1/tasks and of what describes the API.
package main

import (
	"github.com/sortie-dev/sortie/functions/tasks"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/clients"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/executions"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/outputs"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/runner"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/signer"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/store"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("tasks")
	ports := p.Ports()
	ports.Store, ports.Executions = store.New(p), executions.New(p)
	ports.Runner, ports.Signer = runner.New(p), signer.New(p)
	ports.Outputs, _ = outputs.New(p)
	p.ServeHTTP(tasks.Routes(orchestrator.New(ports, p.Settings()), p.Version()), clients.Tokens(p))
}
