// The function control serves the routes of /v1/pools.
package main

import (
	"github.com/sortie-dev/sortie/functions/control"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed/dispatching"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed/engines"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

func main() {
	p := process.Start("control")
	config, leave := p.Settings().WithRunners(deployed.RunnerOffer(p)), runs.LeaveToSweep{}
	life := deployed.Lifecycle(p, leave, leave, dispatching.Calls(p), config)
	asked := pools.AskEngines(engines.Replicas(p).Of, deployed.Store(p))
	p.ServeHTTP(control.Routes(app.Pools(life, api.PoolDocument, asked, lambdakit.Observe, config)), deployed.ClientTokens(p))
}
