// Package prometheus serves the metrics of package series in Prometheus' text format.
//
// Counters and histograms belong to the process: they count since its start. Gauges are read
// for each response.
package prometheus

import (
	"bytes"
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/sortie-dev/sortie/shared/domain/forecast"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
)

// buckets are the upper bounds of the histograms of durations in seconds. A start takes a
// fraction of a second, a run up to days.
var buckets = []float64{0.05, 0.25, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 3 * 3600, 12 * 3600, 48 * 3600}

// milliseconds are the bucket bounds of the histograms of inference tasks.
var milliseconds = []float64{5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 120_000, 600_000}

// Registry counts commits and samples. It implements port.Observer and is safe for
// concurrent use.
type Registry struct {
	gauges     series.Reader
	labels     *series.Labels
	registry   *prometheus.Registry
	counters   map[string]*prometheus.CounterVec
	histograms map[string]*prometheus.HistogramVec
}

var _ port.Observer = (*Registry)(nil)

// New returns an empty Registry. labels can be nil.
func New(gauges series.Reader, labels *series.Labels) *Registry {
	r := &Registry{
		gauges: gauges, labels: labels, registry: prometheus.NewRegistry(),
		counters: map[string]*prometheus.CounterVec{}, histograms: map[string]*prometheus.HistogramVec{},
	}
	for _, f := range series.Families() {
		switch f.Kind {
		case series.Counter:
			vector := prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.Name, Help: f.Help}, f.Labels)
			r.registry.MustRegister(vector)
			r.counters[f.Name] = vector
		case series.Histogram:
			bounds := buckets
			switch f.Name {
			case series.PredictionError:
				bounds = forecast.StartErrorBuckets()
			case series.FirstToken, series.Decode:
				bounds = milliseconds
			}
			vector := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: f.Name, Help: f.Help, Buckets: bounds}, f.Labels)
			r.registry.MustRegister(vector)
			r.histograms[f.Name] = vector
		case series.Gauge: // made for each response
		}
	}
	return r
}

// Committed implements port.Observer.
func (r *Registry) Committed(ctx context.Context, of run.Run, events []run.Event) {
	r.Record(ctx, series.OfCommit(of, events)...)
	r.Record(ctx, r.labels.OfCommit(of, events)...)
}

// Record is a series.Recorder.
func (r *Registry) Record(_ context.Context, samples ...series.Sample) {
	for _, s := range samples {
		if counter, ok := r.counters[s.Name]; ok {
			counter.WithLabelValues(s.Labels...).Add(s.Value)
		} else {
			r.histograms[s.Name].WithLabelValues(s.Labels...).Observe(s.Value)
		}
	}
}

// Text returns all series.
func (r *Registry) Text(ctx context.Context) ([]byte, error) {
	gauges, err := r.current(ctx)
	if err != nil {
		return nil, err
	}
	families, err := prometheus.Gatherers{r.registry, gauges}.Gather()
	if err != nil {
		return nil, fmt.Errorf("cannot gather the metrics: %w", err)
	}
	var text bytes.Buffer
	encoder := expfmt.NewEncoder(&text, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return nil, fmt.Errorf("cannot encode the metrics: %w", err)
		}
	}
	return text.Bytes(), nil
}

// current returns a registry with the gauges.
func (r *Registry) current(ctx context.Context) (*prometheus.Registry, error) {
	samples, err := r.gauges(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the gauges: %w", err)
	}
	registry := prometheus.NewRegistry()
	for _, f := range series.Families() {
		if f.Kind != series.Gauge {
			continue
		}
		vector := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: f.Name, Help: f.Help}, f.Labels)
		registry.MustRegister(vector)
		for _, s := range samples {
			if s.Name == f.Name {
				vector.WithLabelValues(s.Labels...).Set(s.Value)
			}
		}
	}
	return registry, nil
}
