// The function callback serves the routes that workers call.
package main

import (
	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/shared/api"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("callback")
	config := p.Settings()
	tokens := orchestrator.NewTokens(deployed.Signer(p), p.Clock(), p.Hex)
	objects, _ := deployed.Outputs(p)
	p.ServeHTTP(callback.Routes(orchestrator.NewWorkers(deployed.Committing(p, config), tokens, objects, api.LogEvent, config)), nil)
}
