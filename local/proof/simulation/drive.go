package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/run"
)

// The pace and the end of a simulation.
const (
	sweepEvery = 20 * time.Second
	// mustEnd is when every run has to have ended: the longest line, and all
	// attempts with their limits, waits and outages.
	mustEnd  = 12 * time.Hour
	maxSteps = 200_000
)

// Outcome is what became of a simulation.
type Outcome struct {
	// Problems are the promises that were broken; none is a pass.
	Problems []string
	// Story tells everything that happened.
	Story string
	// Runs, Lives and Machines count; Took is the time that passed in it.
	Runs, Lives, Machines int
	// Attempts are those of all runs, Steps what the engine and the world were
	// given to do, one after another.
	Attempts, Steps int
	// Calls counts what workers said, Renewals their new tokens.
	Calls, Renewals int
	Took            time.Duration
	// Ends counts the runs by their end.
	Ends map[run.State]int
}

// Run plays the simulation of a seed. An error says that it could not be played;
// Outcome.Problems what it found. It may be called by many goroutines at once.
func Run(ctx context.Context, seed uint64) (o Outcome, err error) {
	err = inFolder(func(dir string) error {
		o, err = newWorld(seed, dir).play(ctx)
		return err
	})
	return o, err
}

func (w *world) play(ctx context.Context) (Outcome, error) {
	if err := w.begin(ctx); err != nil {
		return Outcome{}, fmt.Errorf("cannot begin: %w", err)
	}
	w.requests = 1 + w.random.IntN(6)
	for i := range w.requests {
		policy := w.drawPolicy()
		w.time.after(w.upTo(time.Minute), func() { w.arrive(fmt.Sprintf("request-%d", i), policy) })
	}
	w.planOutages()
	nextSweep := start.Add(sweepEvery)
	quiet := 0
	for ; ; w.steps++ {
		if w.process.dead {
			w.time.until(w.time.now.Add(max(w.upTo(5*time.Second), w.deadUntil.Sub(w.time.now))), func() bool { return false })
			w.upSince = w.time.now
			if err := w.restart(ctx); err != nil {
				return Outcome{}, err
			}
			nextSweep = w.time.now
		}
		worked, began := false, w.time.now
		w.attempted(func() {
			var err error
			if worked, err = w.engine.Step(ctx); err != nil {
				w.broken("the engine fails: %v", err)
			}
		}, func() { worked = true })
		w.blocked += w.time.now.Sub(began)
		if !worked {
			w.passTime(ctx, &nextSweep, &quiet)
		}
		w.check(ctx)
		if quiet > 3 || len(w.problems) > 0 {
			break
		}
		if w.steps > maxSteps || w.time.now.Sub(start) > mustEnd {
			w.broken("after %s and %d steps it has not come to rest", w.time.now.Sub(start), w.steps)
			break
		}
	}
	if len(w.problems) == 0 {
		w.checkEnd(ctx)
	}
	return w.outcome(ctx), w.process.db.Close()
}

// passTime goes on to what comes next: something in the world, a deadline of
// the engine, a sweep.
func (w *world) passTime(ctx context.Context, nextSweep *time.Time, quiet *int) {
	next := *nextSweep
	if due, ok := w.engine.NextDue(); ok && due.Before(next) {
		next = due
	}
	if at, ok := w.time.next(); ok && !at.After(next) {
		first := true
		w.time.until(at, func() bool { was := !first; first = false; return was })
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
	w.attempted(func() {
		if err := w.system.Sweep(ctx, early); err != nil {
			w.note("sweep: %v", err)
		}
	}, func() {})
	if _, more := w.time.next(); !more && w.engine.Running() == 0 && w.allEnded(ctx) {
		*quiet++
	}
}

// record is a task's as the disk holds it; false where the process is dead.
func (w *world) record(task string) (run.Run, bool) {
	if w.process.dead {
		return run.Run{}, false
	}
	r, err := w.process.store.Find(context.Background(), client.Tenant, task)
	if err != nil {
		w.broken("%s was accepted and is lost: %v", task, err)
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
		Problems: w.problems, Story: w.story.String(), Lives: w.lives, Machines: w.machines.made, Steps: w.steps,
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
