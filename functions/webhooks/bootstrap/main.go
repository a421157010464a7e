// The function webhooks serves the routes of /v1/webhooks, and replays.
package main

import (
	"github.com/sortie-dev/sortie/functions/webhooks"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

func main() {
	p := process.Start("webhooks")
	hooks := deployed.Webhooks(p, deployed.Store(p), p.Settings())
	routes := append(webhooks.Routes(hooks), webhooks.ReplayRoutes(delivery.NewReplays(hooks, true))...)
	p.ServeHTTP(routes, deployed.ClientTokens(p))
}
