// The function callback serves the routes that workers call.
package main

import (
	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/logs"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

func main() {
	p := process.Start("callback")
	config := p.Settings()
	tokens := grants.NewTokens(deployed.Signer(p), p.Clock(), p.Hex)
	objects, _ := deployed.Outputs(p)
	life := deployed.Committing(p, config)
	workers := runs.NewWorkers(life, tokens, objects, config)
	output := logs.NewIntake(workers, runs.NewTasks(life.Records), deployed.Store(p), objects, api.LogEvent, p.Clock())
	p.ServeHTTP(callback.Routes(workers, output), nil)
}
