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
	seeds = flag.Uint64("seeds", 60, "number of simulations")
	first = flag.Uint64("seed", 1, "first seed")
	stop  = flag.Bool("stop", false, "stop at the first seed that fails")
	trace = flag.Bool("trace", false, "print the trace of each simulation")
)

// slow is the duration from which a simulation is reported.
const slow = 10 * time.Second

// TestMain collects garbage less often than the default: a simulation allocates
// much and retains little.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// TestInvariants runs one simulation per seed. A failure prints the seed; the
// first one also prints its trace and the command that repeats it.
func TestInvariants(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var runs, attempts, starts, machines, steps, calls, renewals, fallbacks, streamed, deliveries, claimed, stuck int
	traced, started := false, time.Now()
	ends := map[run.State]int{}
	next := make(chan uint64)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := range next {
				began := time.Now()
				o, err := simulation.Run(t.Context(), seed)
				mu.Lock()
				if took := time.Since(began); took > slow {
					t.Logf("seed %d took %s for %d steps and %d runs", seed, took.Round(time.Second), o.Steps, o.Runs)
				}
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				for _, problem := range o.Problems {
					t.Errorf("seed %d: %s", seed, problem)
				}
				if *trace || len(o.Problems) > 0 && !traced {
					traced = traced || len(o.Problems) > 0
					t.Logf("seed %d; repeat with: go test ./local/proof/simulation -args -seed=%[1]d -seeds=1 -trace\n%s", seed, o.Trace)
				}
				runs, attempts, starts, machines = runs+o.Runs, attempts+o.Attempts, starts+o.Starts, machines+o.Machines
				streamed, deliveries = streamed+o.Events, deliveries+o.Deliveries
				claimed, stuck = claimed+o.Claimed, stuck+o.Stuck
				steps, calls, renewals, fallbacks = steps+o.Steps, calls+o.Calls, renewals+o.Renewals, fallbacks+o.Fallbacks
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
	if ends[run.Completed]*4 < runs && *seeds >= 60 {
		t.Errorf("got %d of %d runs Completed, want at least a quarter", ends[run.Completed], runs)
	}
	if fallbacks < 10 && *seeds >= 60 {
		t.Errorf("got %d fallbacks, want at least 10", fallbacks)
	}
	if (claimed < 10 || stuck == 0) && *seeds >= 60 {
		t.Errorf("got %d claims of warm machines, of which %d were given up, want at least 10 and 1", claimed, stuck)
	}
	if renewals == 0 && *seeds >= 300 {
		t.Error("got no renewed token, want some")
	}
	took := time.Since(started).Seconds()
	t.Logf("%d seeds, %.1f per second: %d steps; %d runs in %d attempts on %d machines in %d starts of the process; "+
		"%d calls of workers, %d renewed tokens; %d fallbacks; %d claims of warm machines, %d given up; %d events in streams, %d calls of receivers; ends: %v",
		*seeds, float64(*seeds)/took, steps, runs, attempts, machines, starts, calls, renewals, fallbacks, claimed, stuck, streamed, deliveries, ends)
}

func TestSeedDeterminesTrace(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		var traces [2]string
		for i := range traces {
			o, err := simulation.Run(t.Context(), seed)
			if err != nil {
				t.Fatal(err)
			}
			traces[i] = o.Trace
		}
		if traces[0] != traces[1] {
			t.Errorf("seed %d: got two traces, first difference %q", seed, firstDifference(traces[0], traces[1]))
		}
	}
}

// firstDifference returns the first line of a that differs from b.
func firstDifference(a, b string) string {
	others := strings.Split(b, "\n")
	for i, line := range strings.Split(a, "\n") {
		if i >= len(others) || line != others[i] {
			return line
		}
	}
	return ""
}
