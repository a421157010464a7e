package chaos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/limit"
)

// order is something that clients ask for. Its kind goes along as the batch id,
// by which the worker knows what it is to be.
type order struct {
	kind, format string
	body         string
}

// The kinds of orders.
const (
	// kindTiny is a worker that only calls back.
	kindTiny = "tiny"
	// kindSample exports the sample collection.
	kindSample = "sample"
	// kindSlow exports from a source that takes its time.
	kindSlow = "slow"
	// kindLarge leaves an output that is uploaded in parts.
	kindLarge = "large"
	// kindForeign is a worker that knows the worker contract alone.
	kindForeign = "foreign"
)

func (o order) String() string { return o.kind + "/" + o.format }

// keeps says whether an output comes of it.
func (o order) keeps() bool { return o.kind != kindTiny }

// market is what can be ordered, and the entity APIs that it is made from.
type market struct {
	orders []order
	source http.Handler
}

// collections is the path below which the source serves each kind's collection.
const collections = "/collections"

// newMarket offers everything; what a foreign worker makes only where there is
// one.
func newMarket(clock clock.Clock, foreign bool) (market, error) {
	slow, err := samples.Generate(1, samples.Shape{
		Entities: 24, Fanout: 6, Rate: map[samples.Defect]float64{samples.Slow: 0.9}, Delay: 30 * time.Millisecond,
	})
	if err != nil {
		return market{}, err
	}
	large, err := samples.Generate(2, samples.Shape{Entities: 30, Fanout: 29, TextBytes: 500_000})
	if err != nil {
		return market{}, err
	}
	mux := http.NewServeMux()
	for kind, c := range map[string]*samples.Collection{kindSample: samples.Sample(), kindSlow: slow, kindLarge: large} {
		mux.Handle(collections+"/"+kind+"/", http.StripPrefix(collections+"/"+kind, c.Handler(clock)))
	}
	m := market{source: mux}
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
				return market{}, fmt.Errorf("cannot write an order: %w", err)
			}
			m.orders = append(m.orders, order{each.kind, format, string(body)})
		}
	}
	return m, nil
}

// local are the orders that need no source but the stack's own.
func (m market) local() []order {
	var list []order
	for _, o := range m.orders {
		if o.kind == kindTiny || o.kind == kindSample || o.kind == kindForeign {
			list = append(list, o)
		}
	}
	return list
}
