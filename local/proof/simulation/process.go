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

// died is the panic of a process that is killed.
type died struct{}

// process is one life of Sortie: what is in memory is gone with it.
type process struct {
	w     *world
	db    *sqlite.DB
	store port.Store
	api   http.Handler
	dead  bool
}

// begin starts Sortie on what the disk holds.
func (w *world) begin(ctx context.Context) error {
	p := &process{w: w}
	path := filepath.Join(w.dir, "sortie.db")
	if w.lives == 0 {
		if err := install(path); err != nil {
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
	w.lives++
	store := fake.NewStore(inner, fake.Seeded(w.seed+uint64(w.lives)<<32, w.plan.lostCommits), //nolint:gosec // lives counts up from 0
		func(err error) { w.broken("misuse of the store: %v", err) })
	executions := &executions{process: p}
	system := orchestrator.NewSystem(
		&mortalStore{store, p}, executions, mortalRunner{w.machines, p}, w.buckets, w.signer, w.time, w.log,
		chance{w}, w.probe, orchestrator.FixedBucket(orchestrator.WorkerBucket{}), api.Environment, w.config,
	)
	if p.api, err = w.serving(system); err != nil {
		return err
	}
	functions := stack.Functions(system)
	machine, err := stateMachine()
	if err != nil {
		return err
	}
	executions.Engine, err = engine.New(ctx, engine.Config{
		DB: p.db, Clock: w.time, Name: "run", Definition: machine, Log: w.log, Random: w.random.Uint64,
		Invoke: func(ctx context.Context, function string, payload json.RawMessage) (json.RawMessage, error) {
			if w.chance(w.plan.lostCalls / 2) {
				return nil, &engine.InvokeError{Name: "Lambda.ServiceException", Cause: "it was not reached"}
			}
			if w.chance(w.plan.unforeseen) {
				return nil, &engine.InvokeError{Name: "errorString", Cause: "nobody foresaw this"}
			}
			if w.chance(w.plan.zombies) {
				w.time.after(w.upTo(2*time.Minute), func() {
					w.note("a call of %s comes to life: %s", function, payload)
					w.attempted(func() { _, _ = p.call(ctx, functions[function], payload) }, func() {})
				})
				return nil, &engine.InvokeError{Name: "Lambda.SdkClientException", Cause: "it did not answer"}
			}
			return p.call(ctx, functions[function], payload)
		},
	})
	w.process, w.system, w.engine = p, system, executions.Engine
	return err
}

// chance draws from the world's random numbers.
type chance struct{ w *world }

// Float64 implements orchestrator.Chance.
func (c chance) Float64() float64 { return c.w.random.Float64() }

// Hex implements orchestrator.Chance.
func (c chance) Hex(n int) string { return c.w.hex(n) }

// stateMachine is the file of the runs' state machine, with each function under
// its own name.
var stateMachine = sync.OnceValues(func() ([]byte, error) {
	names := map[string]string{}
	for _, name := range statemachines.Functions() {
		names[name] = name
	}
	text, err := statemachines.Run(names)
	return []byte(text), err
})

// call makes a call of a function, as long as its process lives.
func (p *process) call(ctx context.Context, function lambdakit.TaskFunc, payload json.RawMessage) (json.RawMessage, error) {
	if p.w.process != p {
		return nil, errors.New("its process is dead")
	}
	answer, err := function(ctx, payload)
	if p.dead { // the handler's wrapper takes a panic for an error
		panic(died{})
	}
	if err != nil {
		return nil, &engine.InvokeError{Name: lambdakit.ErrorName(err), Cause: err.Error()}
	}
	return answer, nil
}

// mortal panics in a process that is dead, or that is killed now.
func (p *process) mortal() {
	if !p.dead && p.w.chance(p.w.plan.crashes) {
		p.w.note("the process is killed")
		p.dead = true
	}
	if p.dead {
		panic(died{})
	}
}

// attempted does something in the process; otherwise is done where it died, or
// is dead.
func (w *world) attempted(do, otherwise func()) {
	if w.process.dead {
		otherwise()
		return
	}
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case died:
			otherwise()
		default:
			panic(reason)
		}
	}()
	do()
}

// mortalStore is a store whose process can be killed before and after a commit.
type mortalStore struct {
	port.Store
	process *process
}

// Create implements port.Store.
func (s *mortalStore) Create(ctx context.Context, first port.Write, key *port.IdempotencyKey) (*run.Run, error) {
	s.process.mortal()
	existing, err := s.Store.Create(ctx, first, key)
	s.process.mortal()
	return existing, err
}

// Commit implements port.Store.
func (s *mortalStore) Commit(ctx context.Context, writes ...port.Write) error {
	s.process.mortal()
	if w := s.process.w; w.chance(w.plan.slowCommits) {
		w.time.until(w.time.now.Add(w.upTo(20*time.Second)), func() bool { return s.process.dead })
		s.process.mortal()
	}
	err := s.Store.Commit(ctx, writes...)
	s.process.mortal()
	return err
}

// Load implements port.Store.
func (s *mortalStore) Load(ctx context.Context, ref run.Ref) (run.Run, error) {
	if s.process.dead {
		panic(died{})
	}
	return s.Store.Load(ctx, ref)
}

// mortalRunner is a runner whose caller may be dead when it answers.
type mortalRunner struct {
	*machines
	process *process
}

// Launch implements port.Runner.
func (r mortalRunner) Launch(ctx context.Context, spec port.LaunchSpec) (port.Machine, error) {
	r.process.mortal()
	m, err := r.machines.Launch(ctx, spec)
	r.process.mortal()
	return m, err
}

// restart ends what is left of a dead process and begins the next.
func (w *world) restart(ctx context.Context) error {
	if err := w.process.db.Close(); err != nil {
		return errors.Join(errors.New("the dead process's database does not close"), err)
	}
	if err := w.begin(ctx); err != nil {
		return fmt.Errorf("it does not start again: %w", err)
	}
	w.early = true
	return nil
}
