// The function registry serves the routes of /v1/artifacts and /v1/catalog.
package main

import (
	"github.com/sortie-dev/sortie/functions/registry"
	"github.com/sortie-dev/sortie/shared/api"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("registry")
	records := deployed.Records(p, deployed.Store(p))
	objects, _ := deployed.Outputs(p)
	config := p.Settings().WithArtifactLimit(registry.FunctionLimit)
	p.ServeStream(append(
		registry.Routes(orchestrator.NewArtifacts(records, objects, p.Hex, config)),
		registry.CatalogRoutes(orchestrator.NewModels(records, api.ModelDocument, config))...,
	), deployed.ClientTokens(p))
}
