// Package seeds runs simulations in a test, one per seed. It reports failed seeds so that they
// can be repeated.
package seeds

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Flags are the flags of a test binary that runs simulations.
type Flags struct {
	// Count is the number of simulations. First is the first seed.
	Count, First *uint64
	stop, trace  *bool
}

// Define defines the flags. Call it before the flags are parsed.
func Define(count uint64) Flags {
	return Flags{
		Count: flag.Uint64("seeds", count, "number of simulations"),
		First: flag.Uint64("seed", 1, "first seed"),
		stop:  flag.Bool("stop", false, "stop at the first seed that fails"),
		trace: flag.Bool("trace", false, "print the trace of each simulation"),
	}
}

// Main runs the tests of a binary. It collects garbage less often than the default, because a
// simulation allocates much and retains little.
func Main(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// Outcome is the result of one seed's simulation.
type Outcome struct {
	// Problems are the violated invariants. Trace is the same in each run of the seed.
	Problems []string
	Trace    string
	// Add adds the simulation to the totals of the test. Calls of Add never overlap.
	Add func()
}

// progress is the interval of progress reports.
const progress = time.Minute

// Each runs the simulation of each seed, concurrently on all CPUs. A failure prints the seed
// and the command that repeats it, with the test's folder, and the other seeds continue. The
// first failure also prints its trace. A test that takes more than a minute prints its
// progress. Each returns the simulations per second.
func Each(t *testing.T, f Flags, folder string, play func(seed uint64) Outcome) float64 {
	t.Helper()
	e := &each{t: t, flags: f, folder: folder, clock: clock.System{}}
	e.started = e.clock.Now()
	ended := make(chan struct{})
	var reporter sync.WaitGroup
	reporter.Go(func() { e.report(ended) })
	next := make(chan uint64)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := range next {
				e.add(seed, guarded(play, seed))
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
	close(ended)
	reporter.Wait()
	return float64(*f.Count) / e.clock.Now().Sub(e.started).Seconds()
}

// guarded runs the simulation of a seed. A panic is reported as a problem of that seed.
func guarded(play func(seed uint64) Outcome, seed uint64) (o Outcome) {
	defer func() {
		if reason := recover(); reason != nil {
			o = Outcome{Problems: []string{fmt.Sprintf("panic: %v\n%s", reason, debug.Stack())}, Add: func() {}}
		}
	}()
	return play(seed)
}

// each is the state of a test over many seeds.
type each struct {
	t       *testing.T
	flags   Flags
	folder  string
	clock   clock.System
	started time.Time

	mu           sync.Mutex
	done, failed uint64
}

// add reports the problems of a simulation and adds it to the totals.
func (e *each) add(seed uint64, o Outcome) {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done++
	for _, problem := range o.Problems {
		e.t.Errorf("seed %d: %s", seed, problem)
	}
	if len(o.Problems) > 0 {
		e.failed++
		e.t.Logf("seed %d; repeat with: go test ./%s -args -seed=%[1]d -seeds=1 -trace", seed, e.folder)
	}
	if *e.flags.trace || len(o.Problems) > 0 && e.failed == 1 {
		e.t.Logf("trace of seed %d\n%s", seed, o.Trace)
	}
	o.Add()
}

// report prints the progress until ended is closed.
func (e *each) report(ended <-chan struct{}) {
	e.t.Helper()
	for {
		tick, stop := e.clock.NewTimer(progress)
		select {
		case <-ended:
			stop()
			return
		case <-tick:
		}
		e.mu.Lock()
		e.t.Log(line(e.done, e.failed, *e.flags.Count, e.clock.Now().Sub(e.started)))
		e.mu.Unlock()
	}
}

// line formats the progress of a test.
func line(done, failed, count uint64, took time.Duration) string {
	left := "unknown"
	if done > 0 {
		left = time.Duration(float64(took) / float64(done) * float64(count-done)).Round(time.Minute).String()
	}
	return fmt.Sprintf("%d of %d seeds, %d failed, after %s; time left: %s", done, count, failed, took.Round(time.Second), left)
}
