package deployed

import (
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/app/artifacts"
	"github.com/sortie-dev/sortie/shared/app/prompts"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// Artifacts returns the artifacts in a table and a bucket.
func Artifacts(p *process.Process, store *dynamo.Store, outputs port.Outputs, config runs.Config) *artifacts.Registry {
	return artifacts.NewRegistry(store, outputs, p.Clock(), p.Log, p.Hex, config.Policy.RecordRetention, config.ArtifactLimit)
}

// Prompts returns the large requests in a table and a bucket.
func Prompts(p *process.Process, store *dynamo.Store, outputs port.Outputs) *prompts.Store {
	return prompts.New(store, outputs, p.Clock())
}

// Models returns the catalog of models in a table.
func Models(p *process.Process, store *dynamo.Store, config runs.Config) *artifacts.Models {
	return artifacts.NewModels(store, p.Clock(), p.Log, api.ModelDocument, config.ModelKeys)
}
