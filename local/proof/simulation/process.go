package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/api"
	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/porttest/fake"
	"github.com/sortie-dev/sortie/shared/run"
	"github.com/sortie-dev/sortie/statemachines"
)

// processCrash is the panic of a process that is killed.
type processCrash struct{}

// process is one start of Sortie with its memory.
type process struct {
	w       *world
	db      *sqlite.DB
	store   port.Store
	api     http.Handler
	crashed bool
}

// startProcess starts Sortie with the stored data.
func (w *world) startProcess(ctx context.Context) error {
	p := &process{w: w}
	path := filepath.Join(w.dir, "sortie.db")
	if w.starts == 0 {
		if err := copyTemplate(path); err != nil {
			return err
		}
	}
	var err error
	if p.db, err = sqlite.Open(ctx, path); err != nil {
		return err
	}
	inner, err := sqlite.NewStore(ctx, p.db, w.time)
	if err != nil {
		return err
	}
	p.store = inner
	w.starts++
	store := fake.NewStore(inner, fake.Seeded(w.seed+uint64(w.starts)<<32, w.plan.lostCommits), //nolint:gosec // starts counts up from 0
		func(err error) { w.fail("misuse of the store: %v", err) })
	executions := &executions{process: p}
	system := orchestrator.NewSystem(
		&crashingStore{store, p}, executions, crashingRunner{w.machines, p}, w.buckets, w.signer, w.time, w.log,
		chance{w}, w.canary, orchestrator.FixedBucket(orchestrator.WorkerBucket{}), api.Environment, w.config,
	)
	if p.api, err = w.workerAPI(system); err != nil {
		return err
	}
	functions := stack.Functions(system)
	machine, err := stateMachine()
	if err != nil {
		return err
	}
	executions.Engine, err = engine.New(ctx, engine.Config{
		DB: p.db, Clock: w.time, Name: "run", MaxEvents: w.config.MaxEvents, Definition: machine, Log: w.log, Random: w.random.Uint64,
		Invoke: func(ctx context.Context, function string, payload json.RawMessage) (json.RawMessage, error) {
			if w.chance(w.plan.lostCalls / 2) {
				return nil, &engine.InvokeError{Name: "Lambda.ServiceException", Cause: "unreachable"}
			}
			if w.chance(w.plan.unforeseen) {
				return nil, &engine.InvokeError{Name: "errorString", Cause: "unexpected error"}
			}
			if w.chance(w.plan.delayedCalls) {
				w.time.after(w.upTo(2*time.Minute), func() {
					w.note("a delayed call of %s runs: %s", function, payload)
					w.inProcess(func() { _, _ = p.call(ctx, functions[function], payload) }, func() {})
				})
				return nil, &engine.InvokeError{Name: "Lambda.SdkClientException", Cause: "no response"}
			}
			return p.call(ctx, functions[function], payload)
		},
	})
	w.process, w.system, w.engine = p, system, executions.Engine
	return err
}

// chance draws from the world's random numbers.
type chance struct{ w *world }

// Float64 implements orchestrator.Random.
func (c chance) Float64() float64 { return c.w.random.Float64() }

// Hex implements orchestrator.Random.
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

// call calls a function unless its process has ended.
func (p *process) call(ctx context.Context, function lambdakit.TaskFunc, payload json.RawMessage) (json.RawMessage, error) {
	if p.w.process != p {
		return nil, errors.New("the process has ended")
	}
	answer, err := function(ctx, payload)
	if p.crashed { // the handler's wrapper turns a panic into an error
		panic(processCrash{})
	}
	if err != nil {
		return nil, &engine.InvokeError{Name: lambdakit.ErrorName(err), Cause: err.Error()}
	}
	return answer, nil
}

// maybeCrash panics if the process has crashed, or if it crashes now.
func (p *process) maybeCrash() {
	if !p.crashed && p.w.chance(p.w.plan.crashes) {
		p.w.note("the process is killed")
		p.crashed = true
	}
	if p.crashed {
		panic(processCrash{})
	}
}

// inProcess runs do in the process. It runs otherwise if the process has
// crashed or crashes meanwhile.
func (w *world) inProcess(do, otherwise func()) {
	if w.process.crashed {
		otherwise()
		return
	}
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case processCrash:
			otherwise()
		default:
			panic(reason)
		}
	}()
	do()
}

// crashingStore is a store whose process can crash before and after a commit.
type crashingStore struct {
	port.Store
	process *process
}

// Create implements port.Store.
func (s *crashingStore) Create(ctx context.Context, first port.Write, key *port.IdempotencyKey) (*run.Run, error) {
	s.process.maybeCrash()
	existing, err := s.Store.Create(ctx, first, key)
	s.process.maybeCrash()
	return existing, err
}

// Commit implements port.Store.
func (s *crashingStore) Commit(ctx context.Context, writes ...port.Write) error {
	s.process.maybeCrash()
	if w := s.process.w; w.chance(w.plan.slowCommits) {
		w.time.runUntil(w.time.now.Add(w.upTo(20*time.Second)), func() bool { return s.process.crashed })
		s.process.maybeCrash()
	}
	err := s.Store.Commit(ctx, writes...)
	s.process.maybeCrash()
	return err
}

// Load implements port.Store.
func (s *crashingStore) Load(ctx context.Context, ref run.Ref) (run.Run, error) {
	if s.process.crashed {
		panic(processCrash{})
	}
	return s.Store.Load(ctx, ref)
}

// crashingRunner is a runner whose caller can crash before it answers.
type crashingRunner struct {
	*machines
	process *process
}

// Launch implements port.Runner.
func (r crashingRunner) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	r.process.maybeCrash()
	m, err := r.machines.Launch(ctx, spec)
	r.process.maybeCrash()
	return m, err
}

// restart cleans up a crashed process and starts the next one.
func (w *world) restart(ctx context.Context) error {
	if err := w.process.db.Close(); err != nil {
		return errors.Join(errors.New("cannot close the database of the crashed process"), err)
	}
	if err := w.startProcess(ctx); err != nil {
		return fmt.Errorf("cannot restart: %w", err)
	}
	w.early = true
	return nil
}
