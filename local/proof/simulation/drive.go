package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/capacity"
	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

const maxSteps = 2_000_000

// Outcome is the result of a simulation.
type Outcome struct {
	// Problems are the violated invariants.
	Problems []string
	// Trace is the log of all events.
	Trace string
	// Runs, Starts and Machines count runs, starts of the process, and machines. Took is the
	// simulated time.
	Runs, Starts, Machines int
	// Attempts counts the attempts of all runs, Steps the events.
	Attempts, Steps int
	// Calls counts the calls of workers, Renewals the tokens that they renewed.
	Calls, Renewals int
	Took            time.Duration
	// Fallbacks counts the fallbacks of all runs.
	Fallbacks int
	// Claimed counts the claims of warm machines, and Stuck those that were abandoned. Recycled
	// counts those after which the machine was recycled, and Reused the claims of recycled
	// machines.
	Claimed, Stuck, Recycled, Reused int
	// Replicas counts the runs of replicas, which are not in Ends. Tasks counts the tasks that
	// had a slot of a replica. Drained counts the replicas that were ended after their tasks.
	Replicas, Tasks, Drained int
	// Events counts the events of the stream, Deliveries those that receivers got, and Queued
	// the relays that queued for the stream.
	Events, Deliveries, Queued int
	// After counts the runs that came after runs of other jobs, and Parts the reruns with what comes
	// after them.
	After, Parts int
	// Children counts the children of runs.
	Children int
	// Items counts what happened in a world with sensors.
	Items ItemCounts
	// Dated counts what happened in a world of several days.
	Dated DatedCounts
	// Injected counts the faults by kind.
	Injected map[string]int
	// Ends counts the runs by final state.
	Ends map[run.State]int
}

// Run runs the simulation of a seed. It returns an error if the simulation itself fails;
// Outcome.Problems has its findings. It is safe for concurrent use.
func Run(ctx context.Context, seed uint64) (o Outcome, err error) {
	err = harness.WithTempDir(func(dir string) error {
		o, err = newWorld(seed, dir).run(ctx)
		return err
	})
	return o, err
}

func (w *world) run(ctx context.Context) (Outcome, error) {
	var err error
	if w.OnAWS() {
		w.Home, err = harness.NewAWSHome(ctx, w.Base)
	} else {
		w.Home, err = harness.NewLocalHome(w.Base)
	}
	if err != nil {
		return Outcome{}, err
	}
	if err := w.StartProcess(ctx); err != nil {
		return Outcome{}, fmt.Errorf("cannot start: %w", err)
	}
	if err := w.DefinePools(ctx); err != nil {
		return Outcome{}, err
	}
	w.Note("plan %+v", w.Plan)
	settings := w.Config
	settings.FreePort = nil // its address is that of the program
	w.Note("%d requests, settings %+v", w.Requests, settings)
	if w.Mixed() {
		w.Note("ways %+v", w.Ways)
		for _, p := range w.Pools {
			w.Note("pool %s: %s, limit %d, fallbacks %+v", p.Id, p.Definition.Placement.Runner, p.Definition.Limit, p.Definition.Fallbacks)
		}
	}
	for i := range w.Requests {
		w.Time.After(w.UpTo(w.Spread()), func() { w.submit(fmt.Sprintf("request-%d", i), w.drawRequest()) })
	}
	w.startJobs()
	w.startOperator()
	w.StartFleet()
	w.StartSubscribers()
	w.PlanOutages(w.Ways.Outages)
	w.Time.Spawn(true, func() { w.Sweep(harness.RestartHorizon) })
	w.ScheduleSweep()
	end := w.Time.Now.Add(w.maxTime() + 4*w.datedFor())
	for quiet := false; !quiet && w.Broken == nil && len(w.Problems) == 0; w.steps++ {
		w.next(ctx)
		w.check()
		quiet = w.quiet()
		if w.steps > maxSteps || w.Time.Now.After(end) {
			w.Fail("still active after %s and %d steps: %s", w.Time.Now.Sub(harness.Start), w.steps, w.active())
		}
	}
	if len(w.Problems) == 0 && w.Broken == nil {
		w.SettleEvents(func() {
			w.checkChanges()
			w.steps++
		})
	}
	w.Time.Abandon()
	if len(w.Problems) == 0 && w.Broken == nil {
		w.checkEnd(ctx)
		w.CheckEvents(ctx)
	}
	return w.outcome(), errors.Join(w.Broken, w.Home.Close())
}

// maxTime is an upper limit for the end of all runs: the queue, and all attempts with their
// limits, delays and outages.
func (w *world) maxTime() time.Duration { return 400*w.Longest + w.OutageTime + 24*time.Hour }

// next advances to the next event of the world or the executions and handles it.
func (w *world) next(ctx context.Context) {
	at, ok := w.Time.Next()
	if due, has := w.Home.Due(); has && !w.Process.Crashed && !w.stalled() && (!ok || !due.After(at)) {
		if due.After(w.Time.Now) {
			w.Time.Now = due
		}
		w.Time.Spawn(false, func() {
			w.step(ctx)
		})
		return
	}
	w.Time.Step()
}

// stalled reports whether an outage stops the executions.
func (w *world) stalled() bool { return w.Home.SurvivesCrash() && w.Down(harness.ExecutionsOutage) }

// step makes the executions do their due work. If they are part of the process, this is a call
// of the process.
func (w *world) step(ctx context.Context) {
	do := func(ctx context.Context) {
		if err := w.Home.Step(ctx); err != nil {
			w.Fail("%v", err)
		}
	}
	if w.Home.SurvivesCrash() {
		do(ctx)
		return
	}
	w.Call(func(context.Context) { do(ctx) })
}

// quiet reports whether only sweeps remain.
func (w *world) quiet() bool {
	if w.Time.Busy > 0 && w.Warm == nil && w.Fleet == nil || w.Process.Crashed || !w.jobsQuiet() || !w.FleetQuiet() {
		return false
	}
	for _, r := range w.Records.Ordered {
		if !r.State.Terminal() || harness.ActionsPending(r) != "" || r.Attempt.UploadsLeft {
			return false
		}
	}
	if w.Time.Busy > 0 { // sweeps keep creating warm machines
		w.EndWarm()
		return false
	}
	for name, at := range w.Positions {
		if !at.Ended && !w.hasEnded(name) {
			return false
		}
	}
	return w.WarmQuiet()
}

// hasEnded reports whether an execution has ended, even without entering a final state.
func (w *world) hasEnded(name string) bool {
	x, err := w.Home.States().Describe(context.Background(), name)
	at := w.Positions[name]
	at.Ended = err == nil && x.Status != port.ExecutionRunning
	return at.Ended
}

// active describes a run that has not ended.
func (w *world) active() string {
	for _, r := range w.Records.Ordered {
		if !r.State.Terminal() {
			return fmt.Sprintf("%s is %s since %s", r.ID, r.State, r.EnteredAt.Sub(harness.Start))
		}
		if r.Attempt.UploadsLeft {
			return fmt.Sprintf("%s has uploads of a lost attempt after %d failures to remove them", r.ID, r.Deletion.Failures)
		}
	}
	if waiting := w.itemWaiting(); waiting != "" {
		return waiting
	}
	if w.Warm != nil && w.WarmLeft() != "" {
		return "the record of warm machine " + w.WarmLeft()
	}
	for name, at := range w.Positions {
		if !at.Ended {
			return fmt.Sprintf("execution %s is in %s", name, at.State)
		}
	}
	return fmt.Sprintf("%d events, %d machines", w.Time.Busy, len(w.Machines.Live))
}

func (w *world) outcome() Outcome {
	o := Outcome{
		Problems: w.Problems, Trace: w.Trace.String(), Starts: w.Starts, Machines: w.Machines.Created, Steps: w.steps,
		Calls: w.Calls, Renewals: w.Renewals, Took: w.Time.Now.Sub(harness.Start), Ends: map[run.State]int{},
		Injected: w.Injected,
	}
	if w.dates != nil {
		o.Dated = w.dates.counts
	}
	if w.sensed != nil {
		w.sensed.counts.Killed, w.sensed.counts.Repeated = w.Items.Killed, w.sensed.counts.Repeated+w.Items.Repeated
		o.Items = w.sensed.counts
	}
	o.Events, o.Queued = int(w.Events.Newest), w.Events.Queued
	if w.Warm != nil {
		o.Claimed, o.Stuck, o.Recycled, o.Reused = w.Warm.Claimed, w.Warm.Stuck, w.Recycled, w.Warm.Reused
	}
	if w.Fleet != nil {
		o.Replicas, o.Tasks, o.Drained = w.Fleet.Started, w.Fleet.Taken, w.Fleet.Drained
	}
	for _, s := range w.Subscribers {
		o.Deliveries += s.Count
	}
	for _, r := range w.Records.Ordered {
		o.Runs++
		o.Attempts += r.Attempt.Number
		if r.Child != nil {
			o.Children++
		}
		if g, ok := graphOf(r); ok && r.Graph != nil {
			o.After++
			if g.Root.RunID == r.ID {
				o.Parts++
			}
		}
		o.Fallbacks += len(w.FactsOf(r).Steps)
		if r.Serves == nil {
			o.Ends[r.State]++
		}
	}
	return o
}

// startOperator schedules, in some worlds, an operator who drains the pool or changes its
// limits.
func (w *world) startOperator() {
	w.Resizes = []capacity.Resize{{Limit: w.Config.MaxMachines, DoneAt: harness.Start}}
	if w.Mixed() {
		w.Time.After(0, w.OperateMixed)
		return
	}
	if w.Warmed() {
		w.Time.After(0, w.OperateWarm)
		return
	}
	if w.Contended() {
		w.Time.After(0, w.operateContended)
		return
	}
	if !w.Chance(0.4) {
		return
	}
	resizes := w.Config.MaxMachines > 0 && w.Chance(0.6)
	w.Time.After(w.UpTo(w.Longest/2), func() {
		for range 1 + w.Random.IntN(4) {
			if resizes && w.Chance(0.7) {
				w.Resize()
			} else {
				w.Drain()
				w.Time.Sleep(w.UpTo(w.Longest / 2))
				w.Undrain()
			}
			w.Time.Sleep(w.UpTo(w.Longest / 2))
		}
	})
}
