// The function launch of the run's state machine.
package main

import (
	"github.com/sortie-dev/sortie/functions/launch"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/executions"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/outputs"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/runner"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/signer"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/store"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("launch")
	// What a worker is told has to lead somewhere.
	p.Need("SORTIE_PUBLIC_URL")
	p.Need("SOURCE_API_URL")
	ports, config := p.Ports(), p.Settings()
	ports.Store, ports.Executions = store.New(p), executions.New(p)
	ports.Runner, ports.Signer = runner.New(p), signer.New(p)
	ports.Outputs, config.CurrentBucket = outputs.New(p)
	p.ServeTask(launch.Handler(orchestrator.New(ports, config)))
}
