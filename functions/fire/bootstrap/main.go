// The function fire fires jobs. The wake-ups of jobs invoke it.
package main

import (
	"github.com/sortie-dev/sortie/functions/fire"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("fire")
	p.ServeEvent(fire.Handler(orchestrator.NewFiring(deployed.Committing(p, p.Settings()), deployed.Schedules(p))))
}
