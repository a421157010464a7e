// The function control serves the routes of /v1/pools.
package main

import (
	"github.com/sortie-dev/sortie/functions/control"
	"github.com/sortie-dev/sortie/shared/api"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/dispatching"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/engines"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("control")
	life, config := dispatching.Lifecycle(p)
	config.Runners = deployed.RunnerOffer(p)
	pools := orchestrator.NewPools(life, api.PoolDocument, config)
	pools.AskEngines(engines.Replicas(p).Of)
	p.ServeHTTP(control.Routes(pools), deployed.ClientTokens(p))
}
