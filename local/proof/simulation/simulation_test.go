package simulation_test

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation"
	"github.com/sortie-dev/sortie/shared/run"
)

var (
	seeds = flag.Uint64("seeds", 300, "how many simulations to play")
	first = flag.Uint64("seed", 1, "the first seed")
	tell  = flag.Bool("tell", false, "print the story of each simulation")
)

// TestMain lets garbage lie for longer than Go does by itself: a simulation makes
// much of it and keeps little.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// TestPromisesHoldInEveryWorld plays one simulation a seed. A failure prints
// its seed, the first one its story, and how to play it alone.
func TestPromisesHoldInEveryWorld(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var runs, attempts, lives, machines, steps, calls, renewals int
	told, began := false, time.Now()
	ends := map[run.State]int{}
	next := make(chan uint64)
	var players sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		players.Go(func() {
			for seed := range next {
				o, err := simulation.Run(t.Context(), seed)
				mu.Lock()
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				for _, problem := range o.Problems {
					t.Errorf("seed %d: %s", seed, problem)
				}
				if *tell || len(o.Problems) > 0 && !told {
					told = told || len(o.Problems) > 0
					t.Logf("seed %d; again: go test ./local/proof/simulation -seed=%[1]d -seeds=1 -tell\n%s", seed, o.Story)
				}
				runs, attempts, lives, machines = runs+o.Runs, attempts+o.Attempts, lives+o.Lives, machines+o.Machines
				steps, calls, renewals = steps+o.Steps, calls+o.Calls, renewals+o.Renewals
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
	if ends[run.Completed]*4 < runs {
		t.Errorf("only %d of %d runs have succeeded; worlds in which nothing does prove little", ends[run.Completed], runs)
	}
	if renewals == 0 && *seeds >= 300 {
		t.Error("no worker's token was renewed")
	}
	took := time.Since(began).Seconds()
	t.Logf("%d seeds, %.1f a second: %d steps; %d runs in %d attempts on %d machines in %d lives of the process; "+
		"workers made %d calls and had %d tokens renewed; ends: %v",
		*seeds, float64(*seeds)/took, steps, runs, attempts, machines, lives, calls, renewals, ends)
}

// TestASeedDecidesEverything: a story that cannot be had again explains nothing.
func TestASeedDecidesEverything(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		var stories [2]string
		for i := range stories {
			o, err := simulation.Run(t.Context(), seed)
			if err != nil {
				t.Fatal(err)
			}
			stories[i] = o.Story
		}
		if stories[0] != stories[1] {
			t.Errorf("seed %d has two stories; they part at %q", seed, parting(stories[0], stories[1]))
		}
	}
}

// parting is the first line that differs.
func parting(a, b string) string {
	others := strings.Split(b, "\n")
	for i, line := range strings.Split(a, "\n") {
		if i >= len(others) || line != others[i] {
			return line
		}
	}
	return ""
}
