// Package seeds runs the simulations of a test, one for each seed, and reports those that
// fail so that they can be repeated.
package seeds

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/shared/clock"
)

// Flags are the flags of a test binary that runs simulations.
type Flags struct {
	// Count is the number of simulations, First the first seed.
	Count, First *uint64
	stop, trace  *bool
}

// Define defines the flags. It is called before the flags are parsed.
func Define(count uint64) Flags {
	return Flags{
		Count: flag.Uint64("seeds", count, "number of simulations"),
		First: flag.Uint64("seed", 1, "first seed"),
		stop:  flag.Bool("stop", false, "stop at the first seed that fails"),
		trace: flag.Bool("trace", false, "print the trace of each simulation"),
	}
}

// Main runs the tests of a binary, and collects garbage less often than the default: a
// simulation allocates much and retains little.
func Main(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// Outcome is what the simulation of a seed did.
type Outcome struct {
	// Problems are the violated invariants. Trace is the same whenever the seed runs.
	Problems []string
	Trace    string
	// Add adds the simulation to the sums of the test. It is called for one seed at a time.
	Add func()
}

// Each plays the simulation of each seed, as many at once as there are processors. A failure
// prints the seed; the first one also prints its trace and the command that repeats it, in
// which folder is that of the test. Each returns the number of simulations in a second.
func Each(t *testing.T, f Flags, folder string, play func(seed uint64) Outcome) float64 {
	t.Helper()
	var mu sync.Mutex
	system, traced := clock.System{}, false
	started := system.Now()
	next := make(chan uint64)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := range next {
				o := play(seed)
				mu.Lock()
				for _, problem := range o.Problems {
					t.Errorf("seed %d: %s", seed, problem)
				}
				if *f.trace || len(o.Problems) > 0 && !traced {
					traced = traced || len(o.Problems) > 0
					t.Logf("seed %d; repeat with: go test ./%s -args -seed=%[1]d -seeds=1 -trace\n%[3]s", seed, folder, o.Trace)
				}
				o.Add()
				mu.Unlock()
			}
		})
	}
	for seed := range *f.Count {
		if t.Failed() && *f.stop {
			break
		}
		next <- *f.First + seed
	}
	close(next)
	workers.Wait()
	return float64(*f.Count) / system.Now().Sub(started).Seconds()
}
