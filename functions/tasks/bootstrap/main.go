// The function tasks: the front door of /v1/tasks and of what describes the API.
package main

import (
	"github.com/sortie-dev/sortie/functions/tasks"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/runner"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("tasks")
	ports := p.Ports()
	ports.Store, ports.Executions = deployed.Store(p), deployed.Executions(p)
	ports.Runner, ports.Signer = runner.New(p), deployed.Signer(p)
	ports.Outputs, _ = deployed.Outputs(p)
	p.ServeHTTP(tasks.Routes(orchestrator.New(ports, p.Settings()), p.Version()), deployed.ClientTokens(p))
}
