package starts_test

import (
	"flag"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/bench/starts"
)

var all = flag.Bool("all", false, "measure every case")

// TestGoals measures the cases with 4 apps and at most 100 runs. They must meet the targets.
// Every run must find a warm machine if there is one per run.
func TestGoals(t *testing.T) {
	t.Parallel()
	for _, c := range starts.Cases() {
		if !*all && (c.Runs > 100 || c.Apps != 4) {
			continue
		}
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			r := starts.Measure(t, c)
			if r.Failures > 0 || r.RefusedPercent() > 2 {
				t.Errorf("got %d failures and %.1f %% refused calls, want none and at most 2 %%", r.Failures, r.RefusedPercent())
			}
			if c.Warm && c.Runs <= 100 && r.OnWarm != c.Runs {
				t.Errorf("got %d of %d runs on warm machines, want all", r.OnWarm, c.Runs)
			}
			if c.Warm && r.OnWarm == c.Runs && (r.P50 > time.Second || r.P99 > 5*time.Second) {
				t.Errorf("got p50 %s and p99 %s, want at most 1s and 5s", r.P50, r.P99)
			}
		})
	}
}
