// The function status serves the route GET /status/{task_id}.
package main

import (
	"time"

	"github.com/sortie-dev/sortie/functions/status"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// longest is the longest wait of a request. Each waiting request occupies a
// process.
const longest = 5 * time.Second

func main() {
	p := process.Start("status")
	p.ServeHTTP(status.Routes(runs.NewQueries(deployed.Records(p, deployed.Store(p))), longest), deployed.ClientTokens(p))
}
