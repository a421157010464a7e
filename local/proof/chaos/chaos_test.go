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
	"github.com/sortie-dev/sortie/local/twin/stacktest"
	"github.com/sortie-dev/sortie/shared/clock"
)

var (
	kills = flag.Int("kills", 30, "how many blows there are, over all worlds")
	seed  = flag.Uint64("seed", 0, "the first world's seed; 0 draws one from the clock")
	tell  = flag.Bool("tell", false, "print the story of each world")
)

func TestMain(m *testing.M) {
	stacktest.Main(m, os.Args, os.Environ(), map[string]stacktest.Program{"chaos-worker": chaos.Worker(clock.System{})})
}

// perWorld is how many blows fall on one data folder.
const perWorld = 15

// TestNothingIsLostToKills plays worlds of fifteen kills. One that failed is played
// again with: go test ./local/proof/chaos -kills=15 -seed=N -tell.
func TestNothingIsLostToKills(t *testing.T) {
	t.Parallel()
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano()) % 1_000_000
	}
	foreign := foreignWorker(t)
	peace, err := chaos.Peaceful(t.Context(), t.TempDir(), clock.System{}, foreign)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var total chaos.Outcome
	begun := time.Now()
	t.Cleanup(func() {
		t.Logf("%d blows from seed %d: %d runs in %d attempts, %d POSTs made again, %s", total.Injections, first, total.Runs, total.Attempts, total.Repeats, time.Since(begun).Round(time.Second))
	})
	for n := 0; n*perWorld < *kills; n++ {
		each := first + uint64(n)
		t.Run(fmt.Sprintf("seed=%d", each), func(t *testing.T) {
			t.Parallel()
			o, err := chaos.Run(t.Context(), chaos.Config{
				Seed: each, Kills: min(perWorld, *kills-n*perWorld), Folder: t.TempDir(),
				Clock: clock.System{}, Foreign: foreign, Baseline: peace, Patience: 2 * time.Minute,
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
			if t.Failed() || *tell {
				t.Logf("seed %d:\n%s", each, o.Story)
			}
			mu.Lock()
			defer mu.Unlock()
			total.Injections, total.Runs, total.Attempts, total.Repeats = total.Injections+o.Injections, total.Runs+o.Runs, total.Attempts+o.Attempts, total.Repeats+o.Repeats
		})
	}
}

// foreignWorker is the command of the Python worker that the conformance kit
// judges. Without a Python the worlds are played without it, which a skipped
// test says by its name.
func foreignWorker(t *testing.T) (command []string) {
	t.Helper()
	t.Run("a worker written from the contract's text", func(t *testing.T) {
		script, err := filepath.Abs("../conformance/testdata/worker.py")
		if err != nil {
			t.Fatal(err)
		}
		command = []string{stacktest.Python(t), script, "--seconds=1.5"}
	})
	return command
}
