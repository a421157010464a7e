package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/run"
)

const (
	sweepEvery = 20 * time.Second
	// maxTime is later than the end of any run: the longest queue, and all
	// attempts with their limits, delays and outages.
	maxTime  = 12 * time.Hour
	maxSteps = 200_000
)

// Outcome is the result of a simulation.
type Outcome struct {
	// Problems are the violated invariants.
	Problems []string
	// Trace is the log of all events.
	Trace string
	// Runs, Starts and Machines count runs, starts of the process, and
	// machines. Took is simulated time.
	Runs, Starts, Machines int
	// Attempts counts the attempts of all runs, Steps the steps of the engine
	// and the world.
	Attempts, Steps int
	// Calls counts the calls of workers, Renewals their renewed tokens.
	Calls, Renewals int
	Took            time.Duration
	// Ends counts the runs by final state.
	Ends map[run.State]int
}

// Run runs the simulation of a seed. It returns an error if the simulation
// itself fails; Outcome.Problems holds its findings. It is safe for concurrent
// use.
func Run(ctx context.Context, seed uint64) (o Outcome, err error) {
	err = withTempDir(func(dir string) error {
		o, err = newWorld(seed, dir).run(ctx)
		return err
	})
	return o, err
}

func (w *world) run(ctx context.Context) (Outcome, error) {
	if err := w.startProcess(ctx); err != nil {
		return Outcome{}, fmt.Errorf("cannot start: %w", err)
	}
	w.requested = 1 + w.random.IntN(6)
	for i := range w.requested {
		policy := w.drawPolicy()
		w.time.after(w.upTo(time.Minute), func() { w.submit(fmt.Sprintf("request-%d", i), policy) })
	}
	w.planOutages()
	nextSweep := start.Add(sweepEvery)
	quiet := 0
	for ; ; w.steps++ {
		if w.process.crashed {
			w.time.runUntil(w.time.now.Add(max(w.upTo(5*time.Second), w.deadUntil.Sub(w.time.now))), func() bool { return false })
			w.upSince = w.time.now
			if err := w.restart(ctx); err != nil {
				return Outcome{}, err
			}
			nextSweep = w.time.now
		}
		worked, steppedAt := false, w.time.now
		w.inProcess(func() {
			var err error
			if worked, err = w.engine.Step(ctx); err != nil {
				w.fail("step of the engine: %v", err)
			}
		}, func() { worked = true })
		w.blocked += w.time.now.Sub(steppedAt)
		if !worked {
			w.passTime(ctx, &nextSweep, &quiet)
		}
		w.check(ctx)
		if quiet > 3 || len(w.problems) > 0 {
			break
		}
		if w.steps > maxSteps || w.time.now.Sub(start) > maxTime {
			w.fail("still active after %s and %d steps", w.time.now.Sub(start), w.steps)
			break
		}
	}
	if len(w.problems) == 0 {
		w.checkEnd(ctx)
	}
	return w.outcome(ctx), w.process.db.Close()
}

// passTime advances to the next event of the world, deadline of the engine, or
// sweep.
func (w *world) passTime(ctx context.Context, nextSweep *time.Time, quiet *int) {
	next := *nextSweep
	if due, ok := w.engine.NextDue(); ok && due.Before(next) {
		next = due
	}
	if at, ok := w.time.next(); ok && !at.After(next) {
		first := true
		w.time.runUntil(at, func() bool { was := !first; first = false; return was })
		*quiet = 0
		return
	}
	if next.After(w.time.now) {
		w.time.now = next
	}
	if w.time.now.Before(*nextSweep) {
		return
	}
	*nextSweep = w.time.now.Add(sweepEvery)
	early := time.Duration(0)
	if w.early {
		early, w.early = 24*time.Hour, false
	}
	w.inProcess(func() {
		if err := w.system.Sweep(ctx, early); err != nil {
			w.note("sweep: %v", err)
		}
	}, func() {})
	if _, more := w.time.next(); !more && w.engine.Running() == 0 && w.allEnded(ctx) {
		*quiet++
	}
}

// record returns a task's stored record; false if the process has crashed.
func (w *world) record(task string) (run.Run, bool) {
	if w.process.crashed {
		return run.Run{}, false
	}
	r, err := w.process.store.Find(context.Background(), client.Tenant, task)
	if err != nil {
		w.fail("accepted run %s is lost: %v", task, err)
	}
	return r, err == nil
}

func (w *world) allEnded(ctx context.Context) bool {
	for _, r := range w.records(ctx) {
		if !r.State.Terminal() {
			return false
		}
	}
	return true
}

func (w *world) outcome(ctx context.Context) Outcome {
	o := Outcome{
		Problems: w.problems, Trace: w.trace.String(), Starts: w.starts, Machines: w.machines.created, Steps: w.steps,
		Calls: w.calls, Renewals: w.renewals,
		Took: w.time.now.Sub(start), Ends: map[run.State]int{},
	}
	for _, r := range w.records(ctx) {
		o.Runs++
		o.Attempts += r.Attempt.Number
		o.Ends[r.State]++
	}
	return o
}
