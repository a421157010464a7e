package engine

import (
	"context"
	"io"
	"net/http"
	"net/url"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// loadValue stores a metric's value in the load.
type loadValue func(l *port.EngineLoad, value float64)

func running(l *port.EngineLoad, v float64) { l.Running = plus(l.Running, int(v)) }
func waiting(l *port.EngineLoad, v float64) { l.Waiting = plus(l.Waiting, int(v)) }
func kvCache(l *port.EngineLoad, v float64) { l.KVCacheUsageRatio = highest(l.KVCacheUsageRatio, v) }
func gpu(l *port.EngineLoad, v float64)     { l.GPUUtilization = highest(l.GPUUtilization, v) }
func vram(l *port.EngineLoad, v float64)    { l.VRAMUsedBytes = plus(l.VRAMUsedBytes, v) }

func plus[N int | float64](sum *N, v N) *N {
	if sum != nil {
		v += *sum
	}
	return &v
}

func highest(most *float64, v float64) *float64 {
	if most != nil && *most > v {
		return most
	}
	return &v
}

// slotted is a dialect whose server also reports its slots.
type slotted interface {
	// slots returns the load of a server that serves no metrics.
	slots(ctx context.Context, e *Engine) (port.EngineLoad, error)
}

// Load reads the server's metrics. If the server has none, the load is that of its slots, or
// empty if it does not report those. A service is not asked. llama-server returns 501 without its options for them.
func (e *Engine) Load(ctx context.Context) (port.EngineLoad, error) {
	if e.cfg.Kind == platform.EngineOpenAI {
		return port.EngineLoad{}, ctx.Err()
	}
	families, err := e.families(ctx)
	if err != nil {
		return port.EngineLoad{}, err
	}
	if families == nil {
		if d, has := e.dialect.(slotted); has {
			return d.slots(ctx, e)
		}
		return port.EngineLoad{}, nil
	}
	var load port.EngineLoad
	for name, value := range e.dialect.series() {
		for _, m := range families[name].GetMetric() {
			value(&load, number(m))
		}
	}
	return load, nil
}

// families reads the server's metrics by name. It returns nil if the server serves none.
func (e *Engine) families(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	resp, err := e.report(ctx, e.metrics.JoinPath("/metrics"))
	if err != nil || resp == nil {
		return nil, err
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(resp.Body, largestAnswer))
	if err != nil {
		return nil, fault.Wrap(err, fault.PoolUnavailable, "the engine sent metrics that cannot be read")
	}
	return families, nil
}

// report requests a report at a path. It returns nil if the server does not serve the path.
func (e *Engine) report(ctx context.Context, at *url.URL) (*http.Response, error) {
	resp, err := e.open(ctx, e.client, http.MethodGet, at, nil)
	if err != nil || resp.StatusCode == http.StatusOK {
		return resp, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusNotImplemented {
		return nil, nil
	}
	return nil, e.refused(ctx, resp)
}

// number returns the value of a gauge or of a metric without a type.
func number(m *dto.Metric) float64 {
	if g := m.GetGauge(); g != nil {
		return g.GetValue()
	}
	return m.GetUntyped().GetValue()
}
