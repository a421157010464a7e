package stack

import (
	"context"

	"github.com/sortie-dev/sortie/shared/adapter/prometheus"
	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/series"
)

// newMetrics returns the metrics. Their gauges need a stack that serves requests.
func (s *Stack) newMetrics(config runs.Config) *prometheus.Registry {
	sizes := capacity.NewSizes(s.store, s.memory.Tenant, config.StandardPool())
	return prometheus.New(func(ctx context.Context) ([]series.Sample, error) {
		levels := delivery.NewEventLevels(s.store, s.feed, s.store, s.clock, s.bus != nil)
		engines := func(ctx context.Context) ([]series.Sample, error) {
			return s.system.Dispatcher.Levels(ctx, s.memory.Tenant)
		}
		return series.AllOf(sizes.Samples, levels.Samples, s.streams.Open, engines)(ctx)
	}, series.NewLabels(config.MetricLabels))
}
