// The function registry serves the routes of /v1/artifacts, /v1/catalog and
// /download/{task_id}: all that sends stored bytes to clients.
package main

import (
	"slices"

	"github.com/sortie-dev/sortie/functions/download"
	"github.com/sortie-dev/sortie/functions/registry"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

func main() {
	p := process.Start("registry")
	store := deployed.Store(p)
	objects, _ := deployed.Outputs(p)
	config := p.Settings().WithArtifactLimit(registry.FunctionLimit)
	p.ServeStream(slices.Concat(
		registry.Routes(deployed.Artifacts(p, store, objects, config)),
		registry.CatalogRoutes(deployed.Models(p, store, config)),
		download.Routes(app.Downloads(deployed.Records(p, store), objects, config)),
	), deployed.ClientTokens(p))
}
