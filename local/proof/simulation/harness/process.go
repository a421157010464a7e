package harness

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

// ProcessCrash is the panic value of a killed process.
type ProcessCrash struct{}

// process is one start of Sortie with its memory.
type process struct {
	W         *Base
	Store     database
	Api       http.Handler
	functions map[string]lambdakit.TaskFunc
	Crashed   bool
	// clockOffset is the offset of its host's clock.
	clockOffset time.Duration
}

// StartProcess starts Sortie with the stored data.
func (w *Base) StartProcess(ctx context.Context) error {
	p := &process{W: w, clockOffset: w.drawOffset()}
	w.Process = p
	w.Starts++
	var err error
	if p.Store, err = w.Home.open(ctx); err != nil {
		return err
	}
	machines := port.Runner(crashingRunner{w.Runner, w})
	if warm, ok := w.Runner.(port.WarmMachines); ok && w.Warmed() {
		machines = crashingWarm{crashingRunner{w.Runner, w}, warm}
	}
	store := fake.NewStore(observedStore{p.Store, w}, w.StoreFaults, func(err error) { w.Fail("misuse of the store: %v", err) })
	w.System = app.NewSystem(
		&crashingStore{store, w}, &executions{w}, w.wakeUps, machines, w.Buckets, w.signer, HostClock{w}, w.Log,
		Chance{w}, w.canary, grants.FixedBucket(grants.WorkerBucket{}), fake.NewSecrets(nil), w.Hooks, api.Environment, api.Documents(), app.NoTasks(), series.Discard, w.Config,
	)
	w.startPolls()
	if p.Api, err = w.workerAPI(w.System); err != nil {
		return err
	}
	p.functions = stack.Functions(w.System)
	if err := w.Home.start(ctx); err != nil {
		return err
	}
	w.Watch.Started()
	return nil
}

// StoreFaults draws the fault of a store call.
func (w *Base) StoreFaults(fake.Call) fake.Fate {
	w.MaybeInterrupt()
	switch {
	case w.Down(storeOutage):
		return fake.Lost
	case !w.Injects("lost commit", w.Plan.LostCommits):
		return fake.Applied
	case w.Chance(0.5):
		return fake.Lost
	}
	return fake.Unsure
}

// Chance draws from the world's random numbers. It implements runs.Random.
type Chance struct{ W *Base }

// Float64 implements runs.Random.
func (c Chance) Float64() float64 { return c.W.Random.Float64() }

// Hex implements runs.Random.
func (c Chance) Hex(n int) string { return c.W.Hex(n) }

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
func (w *Base) invoke(ctx context.Context, function string, payload json.RawMessage) (json.RawMessage, error) {
	w.watchCall(payload)
	if w.Injects("lost call", w.Plan.LostCalls/2) {
		return nil, &engine.InvokeError{Name: "Lambda.ServiceException", Cause: "unreachable"}
	}
	if w.Injects("failure without a code", w.Plan.Unforeseen) {
		return nil, &engine.InvokeError{Name: "errorString", Cause: "unexpected error"}
	}
	p := w.Process
	if w.Injects("call that failed and ran later", w.Plan.delayedCalls) {
		w.Time.After(w.UpTo(2*time.Minute), func() {
			w.Note("a delayed call of %s runs: %s", function, payload)
			if w.Process == p || w.Home.SurvivesCrash() {
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
func (w *Base) function(invocation context.Context, name string, payload json.RawMessage) (answer json.RawMessage, err error) {
	functions := w.Process.functions
	ok := w.Call(func(ctx context.Context) {
		// The context of a local function ends only with its process.
		w.Time.Current.Call.Lasting = !w.Home.SurvivesCrash()
		answer, err = functions[name](called{ctx, invocation}, payload)
	})
	if panicked, isPanic := errors.AsType[lambdakit.Panicked](err); ok && isPanic {
		w.Fail("%s panics: %s\n%s", name, panicked.Value, panicked.Stack)
	}
	switch {
	case !ok && w.Home.SurvivesCrash():
		return nil, &engine.InvokeError{Name: "Runtime.ExitError", Cause: "the function's process has ended"}
	case !ok:
		panic(ProcessCrash{})
	case err != nil:
		w.Note("%s fails: %v", name, err)
		return nil, &engine.InvokeError{Name: lambdakit.ErrorName(err), Cause: err.Error()}
	}
	return answer, nil
}

// invocation is one call of Sortie.
type invocation struct {
	Process *process
	cancel  context.CancelFunc
	// clockOffset is the offset of its host's clock.
	clockOffset time.Duration
	Crashed     bool
	// Lasting means that nothing interrupts the call.
	Lasting bool
	// polls means that the call polls sensors.
	polls bool
}

func (i *invocation) dead() bool { return i.Crashed || i.Process.Crashed }

// Resumed implements virtual.Call: a task whose process has crashed ends.
func (i *invocation) Resumed() { i.checkCrash() }

func (i *invocation) checkCrash() {
	if i.dead() {
		panic(ProcessCrash{})
	}
}

// Call makes a call of Sortie. It returns false if the caller gets no answer: the process has
// crashed, crashes meanwhile, or closes the connection.
func (w *Base) Call(do func(context.Context)) (ok bool) {
	if w.Process.Crashed {
		return false
	}
	task := w.Time.Current
	outer := task.Call
	ctx, cancel := context.WithCancel(context.Background())
	mine := &invocation{Process: w.Process, cancel: cancel, clockOffset: w.Process.clockOffset}
	if w.Home.SurvivesCrash() {
		mine.clockOffset = w.drawOffset()
	}
	task.Call = mine
	defer func() {
		task.Call = outer
		cancel()
		switch reason := recover(); {
		case reason == nil:
		case reason == (ProcessCrash{}), reason == http.ErrAbortHandler: //nolint:errorlint // a panic's value; the latter closes the connection
			ok = false
		default:
			panic(reason)
		}
	}()
	do(ctx)
	return !mine.dead()
}

// drawOffset draws the offset of a host's clock.
func (w *Base) drawOffset() time.Duration {
	if w.Plan.Skew == 0 {
		return 0
	}
	return w.UpTo(2*w.Plan.Skew) - w.Plan.Skew
}

// offset returns the offset of the clock of the host of the current call.
func (w *Base) offset() time.Duration {
	if w.Time.Current != nil && w.Time.Current.Call != nil {
		return w.Time.Current.Call.clockOffset
	}
	return w.Process.clockOffset
}

// MaybeCrash panics if the process of the current call has crashed, or crashes it at random.
func (w *Base) MaybeCrash() {
	if w.Time.Current == nil || w.Time.Current.Call == nil {
		return
	}
	current := w.Time.Current.Call
	if !current.dead() && w.Injects("killed process", w.crashes(current)) {
		w.Note("the process is killed")
		if w.Home.SurvivesCrash() {
			current.Crashed = true
		} else {
			w.crash()
		}
	}
	current.checkCrash()
}

// MaybeInterrupt ends the context of the current call at random, like a caller that disconnects
// or a deadline.
func (w *Base) MaybeInterrupt() {
	if w.Time.Current != nil && w.Time.Current.Call != nil && !w.Time.Current.Call.Lasting && w.Injects("interrupted call", w.Plan.Interrupts) {
		w.Note("the call is interrupted")
		w.Time.Current.Call.cancel()
	}
}

// Interrupted returns the fault of a call whose context has ended.
func Interrupted(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(err, fault.Unavailable, "the call was interrupted")
	}
	return nil
}

// crash kills the process and schedules the next start.
func (w *Base) crash() {
	if w.Process.Crashed {
		return
	}
	w.Process.Crashed = true
	w.Time.Push(w.UpTo(5*time.Second), false, w.restart)
}

// restart cleans up a crashed process and starts the next one, unless the
// process is still down.
func (w *Base) restart() {
	if wait := w.Outages[processOutage].Sub(w.Time.Now); wait > 0 {
		w.Time.Push(wait, false, w.restart)
		return
	}
	ctx := context.Background()
	err := w.Home.Close()
	if err == nil {
		err = w.StartProcess(ctx)
	}
	if err != nil {
		w.Broken = errors.Join(w.Broken, fmt.Errorf("cannot restart: %w", err))
		return
	}
	w.UpSince = w.Time.Now
	w.Time.Spawn(true, func() { w.Sweep(RestartHorizon) })
}

// ScheduleSweep schedules the next sweep.
func (w *Base) ScheduleSweep() {
	w.Time.Push(w.Config.SweepInterval, true, func() {
		if w.Settling {
			return
		}
		w.ScheduleSweep()
		w.Time.Spawn(true, func() { w.Sweep(0) })
	})
}

// Sweep sweeps once. Records that are due within early count as due.
func (w *Base) Sweep(early time.Duration) {
	if w.Down(sweepOutage) || w.Down(processOutage) {
		return
	}
	w.Call(func(ctx context.Context) {
		if err := w.System.Sweep(ctx, early); err != nil {
			w.Note("sweep: %v", err)
		}
	})
}

// workerAPI returns the handler for the routes that workers call.
func (w *Base) workerAPI(system *app.System) (http.Handler, error) {
	return httpkit.New(httpkit.Config{
		Loopback: true, Clock: serverClock{HostClock{w}}, Log: w.Log, NewID: func() string { return w.Hex(16) },
	}, callback.Routes(system.Workers, system.Intake)...)
}

// canary sends a canary to the public address.
func (w *Base) canary(ctx context.Context, token string) error {
	if w.Down(NetworkOutage) || w.Injects("lost call", w.Plan.LostCalls) {
		return fault.New(fault.Unavailable, "unreachable")
	}
	_, err := w.System.ReceiveCanary(ctx, token)
	return err
}

// Precision is the permitted delay of a wake-up without a failure.
func (w *Base) Precision() time.Duration {
	if w.Home.SurvivesCrash() {
		return 90 * time.Second
	}
	return 0
}
