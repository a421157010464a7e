package simulation_test

import (
	"flag"
	"runtime"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/local/simulation"
	"github.com/sortie-dev/sortie/shared/run"
)

var (
	seeds = flag.Uint64("seeds", 200, "how many simulations to play")
	first = flag.Uint64("seed", 1, "the first seed")
	tell  = flag.Bool("tell", false, "print the story of each simulation")
)

// TestPromisesHoldInEveryWorld plays one simulation a seed. A failure prints
// its seed; play it alone with: go test ./local/simulation -seed=N -seeds=1 -tell.
func TestPromisesHoldInEveryWorld(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var runs, lives, machines int
	ends := map[run.State]int{}
	next := make(chan uint64)
	var players sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		players.Go(func() {
			for seed := range next {
				o, err := simulation.Run(t.Context(), seed, t.TempDir())
				mu.Lock()
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				for _, problem := range o.Problems {
					t.Errorf("seed %d: %s", seed, problem)
				}
				if *tell {
					t.Logf("seed %d:\n%s", seed, o.Story)
				}
				runs, lives, machines = runs+o.Runs, lives+o.Lives, machines+o.Machines
				for state, n := range o.Ends {
					ends[state] += n
				}
				mu.Unlock()
			}
		})
	}
	for seed := range *seeds {
		next <- *first + seed
	}
	close(next)
	players.Wait()
	t.Logf("%d seeds: %d runs on %d machines in %d lives of the process; ends: %v", *seeds, runs, machines, lives, ends)
}
