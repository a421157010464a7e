package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/statemachines"
)

// RestartHorizon extends the first sweep of a process to records that are due later.
const RestartHorizon = 24 * time.Hour

// processCrash is the panic value of a killed process.
type processCrash struct{}

// process is one start of Sortie with its memory.
type process struct {
	w         *base
	store     database
	api       http.Handler
	functions map[string]lambdakit.TaskFunc
	crashed   bool
	// clockOffset is the offset of its host's clock.
	clockOffset time.Duration
}

// startProcess starts Sortie with the stored data.
func (w *base) startProcess(ctx context.Context) error {
	p := &process{w: w, clockOffset: w.drawOffset()}
	w.process = p
	w.starts++
	var err error
	if p.store, err = w.home.open(ctx); err != nil {
		return err
	}
	machines := port.Runner(crashingRunner{w.runner, w})
	if warm, ok := w.runner.(port.WarmMachines); ok && w.warmed() {
		machines = crashingWarm{crashingRunner{w.runner, w}, warm}
	}
	store := fake.NewStore(observedStore{p.store, w}, w.storeFaults, func(err error) { w.fail("misuse of the store: %v", err) })
	w.system = app.NewSystem(
		&crashingStore{store, w}, &executions{w}, w.wakeUps, machines, w.buckets, w.signer, hostClock{w}, w.log,
		chance{w}, w.canary, grants.FixedBucket(grants.WorkerBucket{}), fake.NewSecrets(nil), w.hooks, api.Environment, api.Documents(), app.NoTasks(), series.Discard, w.config,
	)
	if p.api, err = w.workerAPI(w.system); err != nil {
		return err
	}
	p.functions = stack.Functions(w.system)
	if err := w.home.start(ctx); err != nil {
		return err
	}
	w.watch.Started()
	return nil
}

// storeFaults draws the fault of a store call.
func (w *base) storeFaults(fake.Call) fake.Fate {
	w.maybeInterrupt()
	switch {
	case w.down(storeOutage):
		return fake.Lost
	case !w.chance(w.plan.lostCommits):
		return fake.Applied
	case w.chance(0.5):
		return fake.Lost
	}
	return fake.Unsure
}

// chance draws from the world's random numbers. It implements runs.Random.
type chance struct{ w *base }

// Float64 implements runs.Random.
func (c chance) Float64() float64 { return c.w.random.Float64() }

// Hex implements runs.Random.
func (c chance) Hex(n int) string { return c.w.hex(n) }

// stateMachine returns the definition of the runs' state machine, with
// functions under their own names.
var stateMachine = sync.OnceValues(func() ([]byte, error) {
	names := map[string]string{}
	for _, name := range statemachines.Functions() {
		names[name] = name
	}
	text, err := statemachines.Run(names)
	return []byte(text), err
})

// invoke calls a function for the state machine. Calls can be lost, be delayed, and fail
// without a code.
func (w *base) invoke(ctx context.Context, function string, payload json.RawMessage) (json.RawMessage, error) {
	w.watchCall(payload)
	if w.chance(w.plan.lostCalls / 2) {
		return nil, &engine.InvokeError{Name: "Lambda.ServiceException", Cause: "unreachable"}
	}
	if w.chance(w.plan.unforeseen) {
		return nil, &engine.InvokeError{Name: "errorString", Cause: "unexpected error"}
	}
	p := w.process
	if w.chance(w.plan.delayedCalls) {
		w.time.after(w.upTo(2*time.Minute), func() {
			w.note("a delayed call of %s runs: %s", function, payload)
			if w.process == p || w.home.survivesCrash() {
				_, _ = w.function(ctx, function, payload)
			}
		})
		return nil, &engine.InvokeError{Name: "Lambda.SdkClientException", Cause: "no response"}
	}
	return w.function(ctx, function, payload)
}

// called is the context of a call that also has the values of the context of its invocation.
type called struct {
	context.Context
	invocation context.Context
}

// Value implements context.Context.
func (c called) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.invocation.Value(key)
}

// function calls a function of the current process.
func (w *base) function(invocation context.Context, name string, payload json.RawMessage) (answer json.RawMessage, err error) {
	functions := w.process.functions
	ok := w.call(func(ctx context.Context) {
		// The context of a local function ends only with its process.
		w.time.current.call.lasting = !w.home.survivesCrash()
		answer, err = functions[name](called{ctx, invocation}, payload)
	})
	if panicked, isPanic := errors.AsType[lambdakit.Panicked](err); ok && isPanic {
		w.fail("%s panics: %s\n%s", name, panicked.Value, panicked.Stack)
	}
	switch {
	case !ok && w.home.survivesCrash():
		return nil, &engine.InvokeError{Name: "Runtime.ExitError", Cause: "the function's process has ended"}
	case !ok:
		panic(processCrash{})
	case err != nil:
		w.note("%s fails: %v", name, err)
		return nil, &engine.InvokeError{Name: lambdakit.ErrorName(err), Cause: err.Error()}
	}
	return answer, nil
}

// invocation is one call of Sortie.
type invocation struct {
	process *process
	cancel  context.CancelFunc
	// clockOffset is the offset of its host's clock.
	clockOffset time.Duration
	crashed     bool
	// lasting means that nothing interrupts the call.
	lasting bool
}

func (i *invocation) dead() bool { return i.crashed || i.process.crashed }

func (i *invocation) checkCrash() {
	if i.dead() {
		panic(processCrash{})
	}
}

// call makes a call of Sortie. It returns false if the caller gets no answer: the process has
// crashed, crashes meanwhile, or closes the connection.
func (w *base) call(do func(context.Context)) (ok bool) {
	if w.process.crashed {
		return false
	}
	task := w.time.current
	outer := task.call
	ctx, cancel := context.WithCancel(context.Background())
	mine := &invocation{process: w.process, cancel: cancel, clockOffset: w.process.clockOffset}
	if w.home.survivesCrash() {
		mine.clockOffset = w.drawOffset()
	}
	task.call = mine
	defer func() {
		task.call = outer
		cancel()
		switch reason := recover(); {
		case reason == nil:
		case reason == (processCrash{}), reason == http.ErrAbortHandler: //nolint:errorlint // a panic's value; the latter closes the connection
			ok = false
		default:
			panic(reason)
		}
	}()
	do(ctx)
	return !mine.dead()
}

// drawOffset draws the offset of a host's clock.
func (w *base) drawOffset() time.Duration {
	if w.plan.skew == 0 {
		return 0
	}
	return w.upTo(2*w.plan.skew) - w.plan.skew
}

// offset returns the offset of the clock of the host of the current call.
func (w *base) offset() time.Duration {
	if w.time.current != nil && w.time.current.call != nil {
		return w.time.current.call.clockOffset
	}
	return w.process.clockOffset
}

// maybeCrash panics if the process of the current call has crashed, or crashes it at random.
func (w *base) maybeCrash() {
	if w.time.current == nil || w.time.current.call == nil {
		return
	}
	current := w.time.current.call
	if !current.dead() && w.chance(w.plan.crashes) {
		w.note("the process is killed")
		if w.home.survivesCrash() {
			current.crashed = true
		} else {
			w.crash()
		}
	}
	current.checkCrash()
}

// maybeInterrupt ends the context of the current call at random, like a caller that disconnects
// or a deadline.
func (w *base) maybeInterrupt() {
	if w.time.current != nil && w.time.current.call != nil && !w.time.current.call.lasting && w.chance(w.plan.interrupts) {
		w.note("the call is interrupted")
		w.time.current.call.cancel()
	}
}

// interrupted returns the fault of a call whose context has ended.
func interrupted(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(err, fault.Unavailable, "the call was interrupted")
	}
	return nil
}

// crash kills the process and schedules the next start.
func (w *base) crash() {
	if w.process.crashed {
		return
	}
	w.process.crashed = true
	w.time.push(w.upTo(5*time.Second), false, w.restart)
}

// restart cleans up a crashed process and starts the next one, unless the
// process is still down.
func (w *base) restart() {
	if wait := w.outages[processOutage].Sub(w.time.now); wait > 0 {
		w.time.push(wait, false, w.restart)
		return
	}
	ctx := context.Background()
	err := w.home.close()
	if err == nil {
		err = w.startProcess(ctx)
	}
	if err != nil {
		w.broken = errors.Join(w.broken, fmt.Errorf("cannot restart: %w", err))
		return
	}
	w.upSince = w.time.now
	w.time.spawn(true, func() { w.sweep(RestartHorizon) })
}

// scheduleSweep schedules the next sweep.
func (w *base) scheduleSweep() {
	w.time.push(w.config.SweepInterval, true, func() {
		if w.settling {
			return
		}
		w.scheduleSweep()
		w.time.spawn(true, func() { w.sweep(0) })
	})
}

// sweep sweeps once. Records that are due within early count as due.
func (w *base) sweep(early time.Duration) {
	if w.down(sweepOutage) || w.down(processOutage) {
		return
	}
	w.call(func(ctx context.Context) {
		if err := w.system.Sweep(ctx, early); err != nil {
			w.note("sweep: %v", err)
		}
	})
}

// workerAPI returns the handler for the routes that workers call.
func (w *base) workerAPI(system *app.System) (http.Handler, error) {
	return httpkit.New(httpkit.Config{
		Loopback: true, Clock: serverClock{hostClock{w}}, Log: w.log, NewID: func() string { return w.hex(16) },
	}, callback.Routes(system.Workers, system.Intake)...)
}

// canary sends a canary to the public address.
func (w *base) canary(ctx context.Context, token string) error {
	if w.down(networkOutage) || w.chance(w.plan.lostCalls) {
		return fault.New(fault.Unavailable, "unreachable")
	}
	_, err := w.system.ReceiveCanary(ctx, token)
	return err
}

// precision is the permitted delay of a wake-up without a failure.
func (w *base) precision() time.Duration {
	if w.home.survivesCrash() {
		return 90 * time.Second
	}
	return 0
}
