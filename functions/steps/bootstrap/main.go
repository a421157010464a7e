// The program steps is every step function of the run's state machine. It serves
// the function that SORTIE_STEP names, and makes only the adapters that this
// function uses.
package main

import (
	"github.com/sortie-dev/sortie/functions/steps"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/runner"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.StartStep(steps.Functions())
	ports, config := p.Ports(), p.Settings()
	ports.Store, ports.Executions = deployed.Store(p), deployed.Executions(p)
	switch p.Name {
	case "launch":
		// The worker's environment contains both addresses.
		p.Need("SORTIE_PUBLIC_URL")
		p.Need("SOURCE_API_URL")
		ports.Runner, ports.Signer = runner.New(p), deployed.Signer(p)
		ports.Outputs, config.CurrentBucket = deployed.Outputs(p)
	case "supervise":
		ports.Runner = runner.New(p)
	case "terminate":
		ports.Runner = runner.New(p)
		ports.Outputs, _ = deployed.Outputs(p)
	}
	p.ServeTask(steps.Handlers(orchestrator.New(ports, config))[p.Name])
}
