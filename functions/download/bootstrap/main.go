// The function download serves the routes of /download/{task_id}.
package main

import (
	"github.com/sortie-dev/sortie/functions/download"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("download")
	records := deployed.Records(p, deployed.Store(p))
	objects, _ := deployed.Outputs(p)
	downloads := orchestrator.NewDownloads(orchestrator.NewOutputs(records, objects), p.Settings())
	p.ServeStream(download.Routes(downloads), deployed.ClientTokens(p))
}
