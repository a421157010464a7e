// The function registry: the routes of /v1/artifacts.
package main

import (
	"github.com/sortie-dev/sortie/functions/registry"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("registry")
	records := orchestrator.NewRecords(deployed.Store(p), p.Clock(), p.Log)
	objects, _ := deployed.Outputs(p)
	p.ServeStream(registry.Routes(orchestrator.NewArtifacts(records, objects, p.Hex, p.Settings())), deployed.ClientTokens(p))
}
