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
	life, _ := deployed.Lifecycle(p)
	p.ServeEvent(fire.Handler(orchestrator.NewFiring(life, deployed.Schedules(p))))
}
