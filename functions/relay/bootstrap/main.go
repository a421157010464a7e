// The function relay: the store's stream calls it.
package main

import (
	"github.com/sortie-dev/sortie/functions/relay"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/eventbridge"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("relay")
	bus, err := eventbridge.New(p.AWS(), p.Need("SORTIE_BUS"))
	p.Check(err)
	p.ServeEvent(relay.Handler(orchestrator.NewRelay(bus, p.Log), deployed.Store(p), dynamo.NewEvents, p.Clock().Now))
}
