package simulation_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation"
	"github.com/sortie-dev/sortie/local/proof/simulation/seeds"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Fewer seeds run in "make test" than in "make nightly" (make sim).
var flags = seeds.Define(12)

// many is the number of seeds from which even rare behaviour must have occurred.
const many = 300

// slow is the minimum duration of a simulation that is reported as slow.
const slow = 10 * time.Second

func TestMain(m *testing.M) { seeds.Main(m) }

// TestInvariants runs one simulation per seed.
func TestInvariants(t *testing.T) {
	t.Parallel()
	var runs, attempts, starts, machines, steps, calls, renewals, fallbacks, streamed, deliveries, claimed, stuck, recycled, reused int
	var replicas, tasks, drained, queued, after, parts int
	ends, injected := map[run.State]int{}, map[string]int{}
	rate := seeds.Each(t, flags, "local/proof/simulation", func(seed uint64) seeds.Outcome {
		began := time.Now()
		o, err := simulation.Run(t.Context(), seed)
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		took := time.Since(began)
		return seeds.Outcome{Problems: o.Problems, Trace: o.Trace, Add: func() {
			if took > slow {
				t.Logf("seed %d took %s for %d steps and %d runs", seed, took.Round(time.Second), o.Steps, o.Runs)
			}
			runs, attempts, starts, machines = runs+o.Runs, attempts+o.Attempts, starts+o.Starts, machines+o.Machines
			streamed, deliveries = streamed+o.Events, deliveries+o.Deliveries
			replicas, tasks, drained, queued = replicas+o.Replicas, tasks+o.Tasks, drained+o.Drained, queued+o.Queued
			claimed, stuck, recycled, reused = claimed+o.Claimed, stuck+o.Stuck, recycled+o.Recycled, reused+o.Reused
			after, parts = after+o.After, parts+o.Parts
			steps, calls, renewals, fallbacks = steps+o.Steps, calls+o.Calls, renewals+o.Renewals, fallbacks+o.Fallbacks
			for state, n := range o.Ends {
				ends[state] += n
			}
			for kind, n := range o.Injected {
				injected[kind] += n
			}
		}}
	})
	if ends[run.Completed]*4 < runs-replicas && *flags.Count >= 40 {
		t.Errorf("got %d of %d runs Completed, want at least a quarter", ends[run.Completed], runs-replicas)
	}
	if fallbacks < 10 && *flags.Count >= many {
		t.Errorf("got %d fallbacks, want at least 10", fallbacks)
	}
	if claimed < 10 && *flags.Count >= 40 {
		t.Errorf("got %d claims of warm machines, want at least 10", claimed)
	}
	if stuck == 0 && *flags.Count >= many {
		t.Error("got no warm machine that was given up, want some")
	}
	if (recycled == 0 || reused == 0) && *flags.Count >= many {
		t.Errorf("got %d recycled machines and %d claims of them, want at least 1 and 1", recycled, reused)
	}
	if (replicas < 50 || tasks < 50 || drained < 20) && *flags.Count >= 40 {
		t.Errorf("got %d runs of replicas, %d tasks of them and %d that the pools ended, want at least 50, 50 and 20", replicas, tasks, drained)
	}
	if (after < 50 || parts < 2) && *flags.Count >= many {
		t.Errorf("got %d runs after others, %d of them reruns of a part of a graph; want at least 50 and 2", after, parts)
	}
	if queued < 10 && *flags.Count >= 40 {
		t.Errorf("got %d relays that queued for a stream, want at least 10", queued)
	}
	if renewals == 0 && *flags.Count >= many {
		t.Error("got no renewed token, want some")
	}
	t.Logf("%d seeds, %.1f per second: %d steps; %d runs in %d attempts on %d machines in %d starts of the process; "+
		"%d calls of workers, %d renewed tokens; %d fallbacks; %d claims of warm machines, %d given up, %d recycled, %d of recycled ones; %d runs of replicas, %d ended by pools, %d tasks of them; %d events in streams, %d relays that queued for one, %d calls of receivers; %d runs after others, %d reruns of parts; ends: %v",
		*flags.Count, rate, steps, runs, attempts, machines, starts, calls, renewals, fallbacks, claimed, stuck, recycled, reused, replicas, drained, tasks, streamed, queued, deliveries, after, parts, ends)
	t.Logf("injected: %s", counted(injected))
}

// counted prints counts by name: "a 1, b 2".
func counted(counts map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(list, ", ")
}

// TestGraphs runs a world of each kind whose jobs come after one another.
func TestGraphs(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{74, 79} {
		o, err := simulation.Run(t.Context(), seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range o.Problems {
			t.Errorf("seed %d: %s", seed, problem)
		}
		if o.After < 5 {
			t.Errorf("seed %d: got %d runs after others, want at least 5", seed, o.After)
		}
	}
}

func TestSeedDeterminesTrace(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
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

// TestFanOuts runs worlds of each kind whose job has children.
func TestFanOuts(t *testing.T) {
	t.Parallel()
	children := 0
	for _, first := range []uint64{20, 35} {
		for n := range uint64(10) {
			seed := first + 50*n
			o, err := simulation.Run(t.Context(), seed)
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range o.Problems {
				t.Errorf("seed %d: %s", seed, problem)
			}
			children += o.Children
		}
	}
	if children < 50 {
		t.Errorf("got %d children, want at least 50", children)
	}
}
