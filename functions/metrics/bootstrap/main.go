// The function metrics: the route GET /metrics. A process of a function sees a part of
// the runs, so this one serves the gauges of the pools alone; the other metrics are in
// CloudWatch.
package main

import (
	"github.com/sortie-dev/sortie/functions/metrics"
	"github.com/sortie-dev/sortie/shared/access"
	"github.com/sortie-dev/sortie/shared/adapter/prometheus"
	"github.com/sortie-dev/sortie/shared/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func main() {
	p := process.Start("metrics")
	sizes := orchestrator.NewPoolSizes(deployed.Store(p), access.Default, p.Settings())
	p.ServeHTTP(metrics.Routes(prometheus.New(sizes.Read).Text), deployed.ClientTokens(p))
}
