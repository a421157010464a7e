// The function fire fires jobs. The wake-ups of jobs invoke it.
package main

import (
	"github.com/sortie-dev/sortie/functions/fire"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

func main() {
	p := process.Start("fire")
	p.ServeEvent(fire.Handler(runs.NewFiring(deployed.Committing(p, p.Settings()), deployed.Schedules(p))))
}
