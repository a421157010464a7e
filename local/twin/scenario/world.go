package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/local/twin/virtual"
	"github.com/sortie-dev/sortie/shared/adapter/keyfile"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/host"
	"github.com/sortie-dev/sortie/shared/app/runs"
	service "github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/statemachines"
)

// pool is the pool of all jobs.
const pool = "default"

// publicURL is the address at which programs report.
const publicURL = "http://sortie"

// restartHorizon makes the first sweep of a process check runs that are not due yet, as in the
// stack: the process before it may have been killed.
const restartHorizon = 20 * 365 * 24 * time.Hour

// owner is the identity of all clients.
var owner = port.Identity{Tenant: access.Default, Workspace: access.Default, Subject: "scenario", Scopes: access.Scopes()}

// world is the state of a play.
type world struct {
	s       Scenario
	config  runs.Config
	random  *rand.Rand
	time    *virtual.Timeline[*call]
	dir     string
	log     *slog.Logger
	signer  port.Signer
	objects *objects
	process *process
	runner  *runner
	tally   *tally
	wakeUps *wakeUps
	// broken is an error of the play itself.
	broken error
}

// process is one start of the server with its memory.
type process struct {
	killed    bool
	db        *sqlite.DB
	engine    *engine.Engine
	system    *app.System
	api       http.Handler
	functions map[string]lambdakit.TaskFunc
}

// killed is the panic value of a task whose process was killed.
type killed struct{}

// call is a call of a process.
type call struct{ of *process }

// Resumed implements virtual.Call.
func (c *call) Resumed() {
	if c.of.killed {
		panic(killed{})
	}
}

func newWorld(s Scenario, dir string) (*world, error) {
	w := &world{
		s: s, dir: dir, random: rand.New(rand.NewPCG(s.Seed(), 0x7477696e)), //nolint:gosec // the seed must determine everything
		time: virtual.New[*call](s.start, killed{}), log: slog.New(slog.DiscardHandler), objects: newObjects(),
	}
	var err error
	if w.signer, err = keyfile.Open(filepath.Join(dir, "keys.pem")); err != nil {
		return nil, fmt.Errorf("cannot make the keys: %w", err)
	}
	if w.config, err = service.Read(setting.Map(nil)); err != nil {
		return nil, fmt.Errorf("standard settings: %w", err)
	}
	w.config.PublicURL, w.config.Host = publicURL, host.Programs{Exec: true}
	w.config.SweepInterval, w.config.SweepWorkers = sweepInterval, 0 // one by one, in the same order each time
	if most := s.File.Limits.Machines; most != nil {
		w.config.MaxMachines = *most
	}
	w.runner, w.tally = newRunner(w), newTally(w)
	// A program reports at once that it has started. A launch that waits for it has the same effect.
	w.config.LaunchWait = w.runner.startTime + w.config.LaunchWait
	w.wakeUps = &wakeUps{w: w, newest: map[job.Ref]int{}}
	return w, nil
}

// startProcess starts the server with the stored data.
func (w *world) startProcess(ctx context.Context) error {
	p := &process{}
	w.process = p
	var err error
	if p.db, err = sqlite.Open(ctx, filepath.Join(w.dir, "sortie.db")); err != nil {
		return fmt.Errorf("cannot open the store: %w", err)
	}
	store, err := sqlite.NewStore(ctx, p.db, hostClock{w})
	if err != nil {
		return fmt.Errorf("cannot open the store: %w", err)
	}
	store.EncodeEvents(api.Published(publicURL).Encode)
	executions := &lateExecutions{}
	p.system = app.NewSystem(
		store, executions, w.wakeUps, w.runner, w.objects, w.signer, hostClock{w}, w.log, chance{w}, w.canary,
		grants.FixedBucket(grants.WorkerBucket{}), secrets{}, noHooks{}, api.Environment, api.Documents(), app.NoTasks(), series.Discard, w.config, w.tally,
	)
	p.api, err = httpkit.New(httpkit.Config{
		Loopback: true, Clock: bodyClock{hostClock{w}}, Log: w.log, NewID: func() string { return chance{w}.Hex(16) },
	}, callback.Routes(p.system.Workers, p.system.Intake)...)
	if err != nil {
		return fmt.Errorf("cannot serve the API: %w", err)
	}
	p.functions = stack.Functions(p.system)
	names := map[string]string{}
	for name := range p.functions {
		names[name] = name
	}
	machine, err := statemachines.Run(names)
	if err != nil {
		return fmt.Errorf("cannot read the state machine: %w", err)
	}
	p.engine, err = engine.New(ctx, engine.Config{
		DB: p.db, Clock: hostClock{w}, Name: "run", Definition: []byte(machine), Log: w.log, Random: w.random.Uint64, Invoke: p.invoke,
	})
	executions.Engine = p.engine
	return err
}

// lateExecutions breaks a cycle: the engine calls the use cases and is created after them.
type lateExecutions struct{ *engine.Engine }

// invoke calls a function for the state machine. The function recovers a panic, also that of a
// killed process, which continues here.
func (p *process) invoke(ctx context.Context, function string, payload json.RawMessage) (json.RawMessage, error) {
	answer, err := p.functions[function](ctx, payload)
	if p.killed {
		panic(killed{})
	}
	if err != nil {
		return nil, &engine.InvokeError{Name: lambdakit.ErrorName(err), Cause: err.Error()}
	}
	return answer, nil
}

// call makes a call of the server in the current task. It returns false if the caller gets no
// answer: the server is stopped, or is killed meanwhile.
func (w *world) call(do func(ctx context.Context)) (ok bool) {
	p := w.process
	if p.killed {
		return false
	}
	task := w.time.Current
	outer := task.Call
	task.Call = &call{p}
	defer func() {
		task.Call = outer
		switch reason := recover(); {
		case reason == nil:
		case reason == (killed{}), reason == http.ErrAbortHandler: //nolint:errorlint // a panic's value; the latter closes the connection
			ok = false
		default:
			panic(reason)
		}
	}()
	do(context.Background())
	return !p.killed
}

// step makes the executions do their due work.
func (w *world) step() {
	w.call(func(ctx context.Context) {
		if _, err := w.process.engine.Step(ctx); err != nil && !w.process.killed {
			w.broken = errors.Join(w.broken, fmt.Errorf("step of the executions: %w", err))
		}
	})
}

// sweep sweeps once. Records that are due within early count as due.
func (w *world) sweep(early time.Duration) {
	w.call(func(ctx context.Context) {
		if w.process.system.EffectFailed() {
			early = max(early, restartHorizon)
		}
		_ = w.process.system.Sweep(ctx, early) // the next sweep repeats what has failed
	})
}

// canary sends a canary to the public address.
func (w *world) canary(ctx context.Context, token string) error {
	if w.process.killed {
		return fault.New(fault.Unavailable, "the server is stopped")
	}
	_, err := w.process.system.ReceiveCanary(ctx, token)
	return err
}

// offset is how far the clock of the server differs from the time now.
func (w *world) offset() (d time.Duration) {
	for _, f := range w.s.faults {
		if f.Type == ClockJump && f.during(w.time.Now) {
			d += f.By.Value()
		}
	}
	return d
}

// fault returns the fault of a type that is in progress; nil without one.
func (w *world) fault(of FaultType) *span {
	for i, f := range w.s.faults {
		if f.Type == of && f.during(w.time.Now) {
			return &w.s.faults[i]
		}
	}
	return nil
}

func (f span) during(now time.Time) bool { return !now.Before(f.from) && now.Before(f.to) }

// hostClock is the clock of the server.
type hostClock struct{ w *world }

// Now implements clock.Clock.
func (c hostClock) Now() time.Time { return c.w.time.Now.Add(c.w.offset()) }

// NewTimer implements clock.Clock. It returns a timer that has fired: the time passes during the
// call.
func (c hostClock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	c.w.time.Sleep(d)
	fired := make(chan time.Time, 1)
	fired <- c.Now()
	return fired, func() {}
}

// bodyClock is the clock of the HTTP server. Its only timer limits the time for reading a body,
// and bodies are in memory, so it never fires.
type bodyClock struct{ hostClock }

// NewTimer implements clock.Clock.
func (bodyClock) NewTimer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// chance is the source of the server's random numbers and ids. It implements runs.Random.
type chance struct{ w *world }

// Float64 implements runs.Random.
func (c chance) Float64() float64 { return c.w.random.Float64() }

// Hex implements runs.Random.
func (c chance) Hex(n int) string {
	var text strings.Builder
	for text.Len() < 2*n {
		fmt.Fprintf(&text, "%016x", c.w.random.Uint64())
	}
	return text.String()[:2*n]
}
