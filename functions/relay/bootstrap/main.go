// The function relay publishes the events of committed changes. The store's stream invokes it.
package main

import (
	"github.com/sortie-dev/sortie/functions/relay"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/eventbridge"
	"github.com/sortie-dev/sortie/shared/app/activity"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed/traces"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

func main() {
	p := process.Start("relay")
	bus, err := eventbridge.New(p.AWS(), p.Need("SORTIE_BUS"))
	p.Check(err)
	store := deployed.Store(p)
	feed, keys := deployed.Feed(p, store), deployed.EventKeys(p, store)
	turns := delivery.NewTurns(store, store, p.Clock(), p.Log, p.Rand)
	dispatch := delivery.NewDispatch(deployed.Delivery(p, store, p.Settings()), turns)
	waiting := relay.Dispatchers{dispatch, deployed.Waker(p, store)}
	relays := delivery.NewRelay(feed, keys, turns, p.Clock(), p.Log, api.Published(p.Need("SORTIE_PUBLIC_URL")), lambdakit.Observe)
	published := delivery.NewBus(feed, bus, keys, turns, p.Log)
	tally := activity.NewTally(store, feed, p.Clock(), p.Log)
	p.ServeEvent(relay.Handler(
		relays, published, waiting, delivery.NewStreamSweep(relays,
			[]delivery.StreamWork{published.Work(), dispatch.Work(), {Do: tally.Count, Position: tally.Position}}, []delivery.StreamWork{published.ReplayWork(), dispatch.ReplayWork()},
		), store, dynamo.ChangeOf, traces.Exporter(p),
		delivery.NewEventLevels(store, feed, store, p.Clock(), true).Lags, series.NewLabels(p.Settings().MetricLabels), p.Clock().Now,
	))
}
