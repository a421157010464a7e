package chaos_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/chaos"
	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

var (
	kills = flag.Int("kills", 10, "number of faults over all worlds")
	seed  = flag.Uint64("seed", 0, "seed of the first world; 0 draws one from the clock")
	trace = flag.Bool("trace", false, "print the trace of each world")
)

func TestMain(m *testing.M) {
	stacktest.Main(m, os.Args, os.Environ(), map[string]stacktest.Program{"chaos-worker": chaos.Worker(clock.System{})})
}

// perWorld is the number of faults injected into one data folder.
const perWorld = 15

// TestNoRunIsLost runs worlds with fifteen faults each. To repeat one: go test
// ./local/proof/chaos -kills=10 -seed=N -trace.
func TestNoRunIsLost(t *testing.T) {
	t.Parallel()
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano()) % 1_000_000
	}
	foreign := foreignWorker(t)
	baseline, err := chaos.NewBaseline(t.Context(), t.TempDir(), clock.System{}, foreign)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var total chaos.Outcome
	started := time.Now()
	t.Cleanup(func() {
		t.Logf("%d faults from seed %d: %d runs in %d attempts, %d repeated POSTs, %s", total.Injections, first, total.Runs, total.Attempts, total.Repeats, time.Since(started).Round(time.Second))
	})
	for n := 0; n*perWorld < *kills; n++ {
		each := first + uint64(n)
		t.Run(fmt.Sprintf("seed=%d", each), func(t *testing.T) {
			t.Parallel()
			o, err := chaos.Run(t.Context(), chaos.Config{
				Seed: each, Kills: min(perWorld, *kills-n*perWorld), Folder: t.TempDir(),
				Clock: clock.System{}, Foreign: foreign, Baseline: baseline, Timeout: 10 * time.Minute,
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range o.Problems {
				t.Error(problem)
			}
			if t.Failed() {
				t.Logf("the stack's log:\n%s", o.Log)
			}
			if t.Failed() || *trace {
				t.Logf("seed %d:\n%s", each, o.Trace)
			}
			mu.Lock()
			defer mu.Unlock()
			total.Injections, total.Runs, total.Attempts, total.Repeats = total.Injections+o.Injections, total.Runs+o.Runs, total.Attempts+o.Attempts, total.Repeats+o.Repeats
		})
	}
}

// foreignWorker returns the command of the conformance kit's Python worker. Without Python the
// subtest is skipped, and the worlds run without this worker.
func foreignWorker(t *testing.T) (command []string) {
	t.Helper()
	t.Run("worker in Python", func(t *testing.T) {
		script, err := filepath.Abs("../../sortie/conformance/testdata/worker.py")
		if err != nil {
			t.Fatal(err)
		}
		command = []string{stacktest.Python(t), script, "--seconds=1.5"}
	})
	return command
}
