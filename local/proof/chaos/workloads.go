package chaos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
)

// workload is a request of the clients. Its kind is sent as the batch id, which selects the
// worker.
type workload struct {
	kind, format string
	body         string
}

const (
	// kindTiny is a worker that only makes the callback.
	kindTiny = "tiny"
	// kindSample exports the sample collection.
	kindSample = "sample"
	// kindSlow exports from a slow source.
	kindSlow = "slow"
	// kindLarge produces an output that is uploaded in parts.
	kindLarge = "large"
	// kindForeign is the worker of Config.Foreign.
	kindForeign = "foreign"
)

func (o workload) String() string { return o.kind + "/" + o.format }

// hasOutput reports whether the worker produces an output.
func (o workload) hasOutput() bool { return o.kind != kindTiny }

// catalog has the workloads and the entity APIs that they read.
type catalog struct {
	workloads []workload
	source    http.Handler
}

// collections is the URL path of the collections, by kind.
const collections = "/collections"

// newCatalog returns all workloads. It includes those of a foreign worker only if foreign is
// true.
func newCatalog(clock clock.Clock, foreign bool) (catalog, error) {
	slow, err := samples.Generate(1, samples.Shape{
		Entities: 24, Fanout: 6, Rate: map[samples.Defect]float64{samples.Slow: 0.9}, Delay: 30 * time.Millisecond,
	})
	if err != nil {
		return catalog{}, err
	}
	large, err := samples.Generate(2, samples.Shape{Entities: 30, Fanout: 29, TextBytes: 500_000})
	if err != nil {
		return catalog{}, err
	}
	mux := http.NewServeMux()
	for kind, c := range map[string]*samples.Collection{kindSample: samples.Sample(), kindSlow: slow, kindLarge: large} {
		mux.Handle(collections+"/"+kind+"/", http.StripPrefix(collections+"/"+kind, c.Handler(clock)))
	}
	m := catalog{source: mux}
	for _, each := range []struct {
		kind, pi string
		formats  []string
		batch    int
	}{
		{kindTiny, samples.SampleRoot, []string{"mods"}, 1},
		{kindSample, samples.SampleRoot, limit.Formats(), 10},
		{kindSlow, slow.Roots()[0].PI, []string{"mods", "dc"}, 3},
		{kindLarge, large.Roots()[0].PI, []string{"mods"}, 10},
		{kindForeign, samples.SampleRoot, []string{"mods", "dc"}, 1},
	} {
		if each.kind == kindForeign && !foreign {
			continue
		}
		for _, format := range each.formats {
			body, err := json.Marshal(map[string]any{
				"pi": each.pi, "batch_id": each.kind,
				"options": map[string]any{"recursive": true, "parallelBatchSize": each.batch, "includeOcr": true},
			})
			if err != nil {
				return catalog{}, fmt.Errorf("cannot encode a workload: %w", err)
			}
			m.workloads = append(m.workloads, workload{each.kind, format, string(body)})
		}
	}
	return m, nil
}

// local returns the workloads that use the stack's own source.
func (m catalog) local() []workload {
	var list []workload
	for _, o := range m.workloads {
		if o.kind == kindTiny || o.kind == kindSample || o.kind == kindForeign {
			list = append(list, o)
		}
	}
	return list
}
