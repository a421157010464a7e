package relays_test

import (
	"flag"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/bench/relays"
)

var all = flag.Bool("all", false, "measure every case in full")

// TestGoals measures the cases with one tenant, except the largest, for three seconds. Each
// measurement also checks that the streams have each event once, without gaps and in order, and
// that the bus received it.
func TestGoals(t *testing.T) {
	t.Parallel()
	for _, c := range relays.Cases() {
		if !*all {
			if c.Tenants > 1 || c.Lanes > 16 {
				continue
			}
			c.For = 3 * time.Second
		}
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			r := relays.Measure(t, c)
			t.Logf("%+v", r)
			if c.Deaths > 0 {
				return
			}
			const few = 8 // a few more conflicts are a large share in three quiet seconds
			if r.SteadyPercent() > 5 && r.SteadyRefused > few {
				t.Errorf("got %.1f %% failed transactions, want at most 5 %%", r.SteadyPercent())
			}
			if r.P99 > 2*time.Second || r.BusLast > 4*time.Second {
				t.Errorf("got a p99 of %s and %s until the bus has all, want at most 2s and 4s", r.P99, r.BusLast)
			}
			if r.Copies() > 1.05 && r.Published-r.Events > few {
				t.Errorf("got %.2f messages for an event, want one", r.Copies())
			}
		})
	}
}
