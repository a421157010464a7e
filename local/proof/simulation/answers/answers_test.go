package answers_test

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/answers"
	"github.com/sortie-dev/sortie/shared/run"
)

var (
	seeds = flag.Uint64("seeds", 20, "number of simulations")
	first = flag.Uint64("seed", 1, "first seed")
	stop  = flag.Bool("stop", false, "stop at the first seed that fails")
	trace = flag.Bool("trace", false, "print the trace of each simulation")
)

// TestMain collects garbage less often than the default: a simulation allocates much and
// retains little.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	m.Run()
}

// play runs the simulation of a seed.
func play(t *testing.T, seed uint64) (o answers.Outcome) {
	t.Helper()
	t.Run(fmt.Sprint(seed), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var err error
			if o, err = answers.Run(t.Context(), seed, synctest.Wait); err != nil {
				t.Error(err)
			}
		})
	})
	return o
}

// TestInvariants runs one simulation per seed. A failure prints the seed; the first one also
// prints its trace and the command that repeats it.
func TestInvariants(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var all answers.Outcome
	ends := map[run.State]int{}
	traced, started := false, time.Now()
	next := make(chan uint64)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := range next {
				o := play(t, seed)
				mu.Lock()
				for _, problem := range o.Problems {
					t.Errorf("seed %d: %s", seed, problem)
				}
				if *trace || len(o.Problems) > 0 && !traced {
					traced = traced || len(o.Problems) > 0
					t.Logf("seed %d; repeat with: go test ./local/proof/simulation/answers -args -seed=%[1]d -seeds=1 -trace\n%s", seed, o.Trace)
				}
				all.Tasks, all.Refused, all.Attempts, all.Events = all.Tasks+o.Tasks, all.Refused+o.Refused, all.Attempts+o.Attempts, all.Events+o.Events
				all.Connections, all.Tokens, all.Cancels, all.Kills = all.Connections+o.Connections, all.Tokens+o.Tokens, all.Cancels+o.Cancels, all.Kills+o.Kills
				all.Requests, all.Kept, all.Took = all.Requests+o.Requests, all.Kept+o.Kept, all.Took+o.Took
				for state, n := range o.Ends {
					ends[state] += n
				}
				mu.Unlock()
			}
		})
	}
	for seed := range *seeds {
		if t.Failed() && *stop {
			break
		}
		next <- *first + seed
	}
	close(next)
	workers.Wait()
	if *seeds >= 20 && (ends[run.Completed]*4 < all.Tasks || ends[run.Cancelled] == 0 || ends[run.Failed] == 0) {
		t.Errorf("got the ends %v of %d tasks, want a quarter Completed, and some of each other state", ends, all.Tasks)
	}
	took := time.Since(started).Seconds()
	t.Logf("%d seeds, %.1f per second, %s simulated: %d tasks in %d attempts with %d requests to engines, %d refused; %d cancels; %d processes killed; "+
		"%d events on %d connections; %d tokens spent; %d requests kept by engines; ends: %v",
		*seeds, float64(*seeds)/took, all.Took.Round(time.Minute), all.Tasks, all.Attempts, all.Requests, all.Refused, all.Cancels, all.Kills, all.Events, all.Connections, all.Tokens, all.Kept, ends)
}
