// The function metrics serves the route GET /metrics. A process of a function observes only a
// part of the runs and of the readers. So this one serves only the gauges, which it reads from
// the table. The other metrics are in CloudWatch.
package main

import (
	"github.com/sortie-dev/sortie/functions/metrics"
	"github.com/sortie-dev/sortie/shared/adapter/prometheus"
	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

func main() {
	p := process.Start("metrics")
	store := deployed.Store(p)
	sizes := capacity.NewSizes(store, access.Default, p.Settings().StandardPool())
	levels := delivery.NewEventLevels(store, deployed.Feed(p, store), store, p.Clock(), true)
	gauges := series.AllOf(sizes.Samples, levels.Samples, stream.OpenConnections(store))
	p.ServeHTTP(metrics.Routes(prometheus.New(gauges, nil).Text), deployed.ClientTokens(p))
}
