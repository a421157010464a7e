package load_test

import (
	"flag"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/bench/load"
)

var (
	whole  = flag.Bool("whole", false, "measure every case")
	living = flag.Bool("living", false, "measure 100,000 living runs: an hour of CPU")
)

// TestLoad puts a small load on the deployed system. All its runs must end in their first
// attempt, and the tenant with half of the load must not delay the others.
func TestLoad(t *testing.T) {
	t.Parallel()
	cases := []load.Case{{Rate: 20, For: 10 * time.Second, Tenants: 8, Work: 5 * time.Second}}
	switch {
	case *living:
		cases = []load.Case{load.Living()}
	case *whole:
		cases = load.Cases()
	}
	for _, c := range cases {
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			r := load.Measure(t, c)
			t.Logf("%+v", r)
			if want := c.Rate * int(c.For/time.Second); r.Runs != want || r.Refused+r.Failed+r.Again > 0 {
				t.Errorf("got %d runs, %d refused, %d failed and %d with a second attempt; want %d, and no others", r.Runs, r.Refused, r.Failed, r.Again, want)
			}
			if r.SmallP99 > r.StartP99*11/10+time.Second {
				t.Errorf("got a p99 of %s for smaller tenants, want that of all, %s", r.SmallP99, r.StartP99)
			}
		})
	}
}
