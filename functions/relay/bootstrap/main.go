// The function relay: the store's stream calls it.
package main

import (
	"github.com/sortie-dev/sortie/functions/relay"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/eventbridge"
	"github.com/sortie-dev/sortie/shared/api"
	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed/traces"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("relay")
	bus, err := eventbridge.New(p.AWS(), p.Need("SORTIE_BUS"))
	p.Check(err)
	store := deployed.Store(p)
	feed, keys := deployed.Feed(p, store), deployed.EventKeys(p, store)
	turns := orchestrator.NewTurns(store, store, p.Clock(), p.Log, p.Rand)
	waiting := relay.Dispatchers{orchestrator.NewDispatch(deployed.Delivery(p, store, p.Settings())).Among(turns)}
	if sockets := deployed.Waker(p, store); sockets != nil {
		waiting = append(waiting, sockets)
	}
	p.ServeEvent(relay.Handler(
		orchestrator.NewRelay(feed, keys, p.Clock(), p.Log, api.Published(p.Need("SORTIE_PUBLIC_URL")), lambdakit.Observe).Among(turns),
		orchestrator.NewBus(feed, bus, keys, p.Log).Among(turns),
		waiting, store, dynamo.ChangeOf, traces.Exporter(p),
		orchestrator.NewEventLevels(store, feed, store, p.Clock(), true).Lags, p.Clock().Now,
	))
}
