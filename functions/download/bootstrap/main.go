// The function download: the front door of /download/{task_id}.
package main

import (
	"github.com/sortie-dev/sortie/functions/download"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/clients"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/outputs"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/store"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("download")
	ports := p.Ports()
	ports.Store = store.New(p)
	ports.Outputs, _ = outputs.New(p)
	p.ServeStream(download.Routes(orchestrator.New(ports, p.Settings())), clients.Tokens(p))
}
