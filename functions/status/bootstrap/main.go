// The function status: the front door of GET /status/{task_id}.
package main

import (
	"time"

	"github.com/sortie-dev/sortie/functions/status"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// longest is how long a request may wait: each that does holds a process.
const longest = 5 * time.Second

func main() {
	p := process.Start("status")
	ports := p.Ports()
	ports.Store = deployed.Store(p)
	p.ServeHTTP(status.Routes(orchestrator.New(ports, p.Settings()), longest), deployed.ClientTokens(p))
}
