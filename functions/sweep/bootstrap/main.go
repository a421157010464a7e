// The function sweep: a schedule calls it, and executions that ended badly.
package main

import (
	"github.com/sortie-dev/sortie/functions/sweep"
	"github.com/sortie-dev/sortie/shared/adapter/probe"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/executions"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/outputs"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/runner"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/store"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("sweep")
	ports, config := p.Ports(), p.Settings()
	if config.PublicURL != "" {
		ports.Probe = probe.New(config.PublicURL)
	}
	ports.Store, ports.Executions, ports.Runner = store.New(p), executions.New(p), runner.New(p)
	ports.Outputs, _ = outputs.New(p)
	p.ServeEvent(sweep.Handler(orchestrator.New(ports, config)))
}
