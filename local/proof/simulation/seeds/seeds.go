// Package seeds runs the simulations of a test, one for each seed, and reports those that
// fail so that they can be repeated.
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

// progress is how often a test says how far it is.
const progress = time.Minute

// Each plays the simulation of each seed, as many at once as there are processors. A failure
// prints the seed and the command that repeats it, in which folder is that of the test, and the
// others continue; the first one also prints its trace. A test that is longer than a minute prints
// its progress. Each returns the number of simulations in a second.
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

// guarded plays the simulation of a seed. A panic is a problem of that seed alone.
func guarded(play func(seed uint64) Outcome, seed uint64) (o Outcome) {
	defer func() {
		if reason := recover(); reason != nil {
			o = Outcome{Problems: []string{fmt.Sprintf("panic: %v\n%s", reason, debug.Stack())}, Add: func() {}}
		}
	}()
	return play(seed)
}

// each is a test of many seeds.
type each struct {
	t       *testing.T
	flags   Flags
	folder  string
	clock   clock.System
	started time.Time

	mu           sync.Mutex
	done, failed uint64
}

// add reports the problems of a simulation and adds it to the sums.
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

// report prints the progress until the simulations have ended.
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

// line says how far a test is.
func line(done, failed, count uint64, took time.Duration) string {
	left := "unknown"
	if done > 0 {
		left = time.Duration(float64(took) / float64(done) * float64(count-done)).Round(time.Minute).String()
	}
	return fmt.Sprintf("%d of %d seeds, %d failed, after %s; time left: %s", done, count, failed, took.Round(time.Second), left)
}
