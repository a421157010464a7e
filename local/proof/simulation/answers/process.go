package answers

import (
	"context"
	"encoding/hex"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
)

const (
	// sweepEvery is the interval of a process's sweeps. The first sweep also handles the
	// records that are due within restartHorizon.
	sweepEvery     = 10 * time.Second
	restartHorizon = 24 * time.Hour
	// batch is the time for which tokens are collected in local worlds, deployedBatch in the
	// others.
	batch         = 5 * time.Millisecond
	deployedBatch = 300 * time.Millisecond
)

// host starts processes, one after another.
type host struct {
	w      *world
	name   string
	starts int

	mu sync.Mutex
	// now is the running process; nil between two processes.
	now *process
}

// process is one start of Sortie with its memory. After its death its calls have no effect.
type process struct {
	w    *world
	name string
	dead atomic.Bool
	ctx  context.Context //nolint:containedctx // of all calls of the process
	end  context.CancelFunc

	system     *app.System
	tasks      *inferences.Inference
	dispatcher *inferences.Dispatcher
}

// kill kills the process. Further calls do nothing.
func (p *process) kill(when string) {
	if p.dead.Swap(true) {
		return
	}
	p.w.note("%s is killed %s", p.name, when)
	p.w.count(func(o *Outcome) { o.Kills++ })
	p.end()
}

// run starts processes in sequence until the world ends.
func (h *host) run() {
	for h.w.ctx.Err() == nil {
		h.starts++
		p, err := h.w.newProcess(h.w.ctx, fmt.Sprintf("%s-%d", h.name, h.starts))
		if err != nil {
			h.w.fail("cannot start a process: %v", err)
			return
		}
		h.set(p)
		p.run()
		h.set(nil)
		if p.dead.Load() {
			draw := h.w.roll("downtime " + h.name)
			h.w.sleep(upTo(draw, h.w.plan.downtime))
		}
	}
}

func (h *host) set(p *process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = p
}

func (h *host) process() *process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// newProcess starts Sortie with the stored data.
func (w *world) newProcess(ctx context.Context, name string) (*process, error) {
	p := &process{w: w, name: name}
	p.ctx, p.end = context.WithCancel(ctx)
	store, feed, err := w.home.open(ctx)
	if err != nil {
		return nil, err
	}
	random := randomOf(w, name)
	wait := batch
	if w.deployed() {
		wait = deployedBatch
	}
	p.system = app.NewSystem(
		faultyStore{fake.NewStore(store, nil, w.misuse), p}, fake.NewExecutions(nil, nil), fake.NewSchedules(nil), noMachines{}, w.outputs,
		fake.NewSigner(nil, "simulation"), bubble, w.log, random, p.canary, grants.FixedBucket(grants.WorkerBucket{}),
		fake.NewSecrets(nil), fake.NoHooks{}, api.Environment, api.Documents(),
		app.ServeTasks(faultyFeed{feed, p}, p.engine, inferences.DispatcherConfig{ID: "dispatcher-" + name, Alone: !w.deployed(), Batch: wait}),
		series.Discard, w.config(),
	)
	p.tasks, p.dispatcher = p.system.Inference, p.system.Dispatcher
	return p, nil
}

// misuse reports a call that violates the contract of the store.
func (w *world) misuse(err error) {
	if !w.deployed() { // the checker does not see writes of other processes
		w.fail("misuse of the store: %v", err)
	}
}

// config returns the settings of the deployment.
func (w *world) config() runs.Config {
	answers := inference.Retention{}
	if w.days > 0 {
		answers.Tenants = map[string]int{tenant: w.days}
	}
	return runs.Config{
		Answers: answers,
		Policy: spec.Policy{
			OutputRetention: 30 * 24 * time.Hour, RecordRetention: 60 * 24 * time.Hour,
			Retry: spec.Retry{InitialDelay: time.Second, Multiplier: 2, MaxDelay: time.Minute},
		},
		Pool: "default", MockEngine: true, SweepInterval: sweepEvery, PublicURL: "http://sortie", TokenTTL: time.Hour,
	}
}

// run runs the process until it is killed, or the world ends.
func (p *process) run() {
	var running sync.WaitGroup
	running.Go(func() { p.dispatcher.Run(p.ctx) })
	<-p.dispatcher.Ready()
	early := restartHorizon
	for p.ctx.Err() == nil {
		if err := p.system.Sweep(p.ctx, early); err != nil && p.ctx.Err() == nil {
			p.w.log.Info("sweep", "process", p.name, "error", err.Error())
		} else {
			early = 0
		}
		_ = clock.Sleep(p.ctx, bubble, sweepEvery)
	}
	running.Wait()
}

// engine returns the replica as this process accesses it. It implements balance.Engines.
func (p *process) engine(_ string, _ platform.EnginePlace, r platform.EngineReplica) (port.Engine, error) {
	return remote{p.w.replicas[r.ID], p}, nil
}

// canary sends a canary to the public address.
func (p *process) canary(ctx context.Context, token string) error {
	if chance(p.w.roll(p.name+" canary"), p.w.plan.lost) && p.w.faulty() {
		return fault.New(fault.Unavailable, "unreachable")
	}
	_, err := p.system.ReceiveCanary(ctx, token)
	return err
}

// randomNumbers are the random numbers of a process. Each kind of id has its own sequence, so
// that the order of calls of different kinds does not matter.
type randomNumbers struct {
	w    *world
	name string
}

func randomOf(w *world, name string) randomNumbers { return randomNumbers{w, name} }

// Float64 implements runs.Random.
func (r randomNumbers) Float64() float64 { return r.w.roll(r.name + " float").Float64() }

// Hex implements runs.Random.
func (r randomNumbers) Hex(n int) string {
	draw, b := r.w.roll(fmt.Sprintf("%s hex %d", r.name, n)), make([]byte, n)
	for i := range b {
		b[i] = byte(draw.Uint32()) //nolint:gosec // G115: eight of its bits
	}
	return hex.EncodeToString(b)
}

// noMachines is a runner without machines.
type noMachines struct{ port.Runner }

// List implements port.Runner.
func (noMachines) List(context.Context, func(port.MachineStatus) bool) error { return nil }

// ListOf implements port.RunnerLists.
func (noMachines) ListOf(context.Context, string, func(port.MachineStatus) bool) error { return nil }
