package metric

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/series"
)

// maxValues is the maximum number of values of a metric in one line (embedded metric format).
const maxValues = 100

// observed contains samples with the same labels: the sum of each counter, the last value of
// each gauge, the values of each histogram.
type observed struct {
	labels map[string]string
	values map[string][]float64
}

// Observe adds samples until Write. It sums counters and keeps the last value of a gauge. So
// the lines are as many as the different sets of labels, and one more for each further hundred
// values of a histogram.
func (c *Counts) Observe(samples ...series.Sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.observed == nil {
		c.observed = map[string]observed{}
	}
	for _, s := range samples {
		f, labels := families[s.Name], map[string]string{}
		key := make([]string, len(f.Labels))
		for i, label := range f.Labels {
			labels[label] = s.Labels[i]
			key[i] = label + "=" + s.Labels[i]
		}
		at := strings.Join(key, ",")
		o, ok := c.observed[at]
		if !ok {
			o = observed{labels, map[string][]float64{}}
			c.observed[at] = o
		}
		switch values := o.values[s.Name]; {
		case f.Kind == series.Counter && len(values) > 0:
			values[0] += s.Value
		case f.Kind == series.Gauge:
			o.values[s.Name] = []float64{s.Value}
		default:
			o.values[s.Name] = append(values, s.Value)
		}
	}
}

// lines returns the samples as lines. Their only dimensions are the stage and the labels.
func (o observed) lines(at time.Time, stage string) (text []byte, err error) {
	for len(o.values) > 0 {
		dimensions := append([]string{"stage"}, families[slices.Sorted(maps.Keys(o.values))[0]].Labels...)
		of := directive{Namespace: Namespace, Dimensions: [][]string{dimensions}}
		line := map[string]any{"stage": stage}
		for label, value := range o.labels {
			line[label] = value
		}
		rest := map[string][]float64{}
		for _, name := range slices.Sorted(maps.Keys(o.values)) {
			values := o.values[name]
			of.Metrics = append(of.Metrics, declared{name, unitOf(name)})
			if families[name].Kind == series.Histogram {
				line[name] = values[:min(len(values), maxValues)]
			} else {
				line[name] = values[0]
			}
			if len(values) > maxValues {
				rest[name] = values[maxValues:]
			}
		}
		line["_aws"] = header{at.UnixMilli(), []directive{of}}
		encoded, err := json.Marshal(line)
		if err != nil {
			return nil, fmt.Errorf("cannot write the metrics: %w", err)
		}
		text = append(append(text, encoded...), '\n')
		o.values = rest
	}
	return text, nil
}

// unitOf returns the unit of a metric of package series.
func unitOf(name string) string {
	if strings.HasSuffix(name, "_seconds") {
		return "Seconds"
	}
	return "Count"
}
