// The function sweep: a schedule calls it, and executions that ended badly.
package main

import (
	"github.com/sortie-dev/sortie/functions/sweep"
	"github.com/sortie-dev/sortie/shared/adapter/probe"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/runner"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("sweep")
	ports, config := p.Ports(), p.Settings()
	if config.PublicURL != "" {
		ports.Probe = probe.New(config.PublicURL)
	}
	ports.Store, ports.Executions, ports.Runner = deployed.Store(p), deployed.Executions(p), runner.New(p)
	ports.Outputs, _ = deployed.Outputs(p)
	p.ServeEvent(sweep.Handler(orchestrator.New(ports, config)))
}
