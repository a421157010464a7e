// The function download: the front door of /download/{task_id}.
package main

import (
	"github.com/sortie-dev/sortie/functions/download"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("download")
	ports := p.Ports()
	ports.Store = deployed.Store(p)
	ports.Outputs, _ = deployed.Outputs(p)
	p.ServeStream(download.Routes(orchestrator.New(ports, p.Settings())), deployed.ClientTokens(p))
}
