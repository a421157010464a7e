// The function registry serves the routes of /v1/artifacts, /v1/catalog and
// /download/{task_id}: all that sends stored bytes to clients.
package main

import (
	"slices"

	"github.com/sortie-dev/sortie/functions/download"
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
	p.ServeStream(slices.Concat(
		registry.Routes(orchestrator.NewArtifacts(records, objects, p.Hex, config)),
		registry.CatalogRoutes(orchestrator.NewModels(records, api.ModelDocument, config)),
		download.Routes(orchestrator.NewDownloads(orchestrator.NewOutputs(records, objects), config)),
	), deployed.ClientTokens(p))
}
