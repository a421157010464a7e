package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// store is the SQLite store with hooks before commits and an outage.
type store struct {
	port.Store
	// commits are the runs of each commit, in order.
	commits [][]run.Ref
	// before runs once before the next commit of several runs, beforeTimeout before
	// the next commit of a heartbeat timeout.
	before, beforeTimeout func()
	// full is a pool that has no slot for the next commit of several runs.
	full string
	// down fails every write, noHeartbeats those of heartbeats and canaries.
	// reconciled lists the reconciled pools.
	down, noHeartbeats bool
	// crash wraps each commit of runs and each write of a pool; nil does nothing.
	crash func(commit func() error) error
	// resources is the error of every write of resources. around wraps those writes and the
	// creations of runs; nil does nothing.
	resources  error
	around     func(write func() error) error
	reconciled []string
	// afterWarm runs once after the next read of warm machines.
	afterWarm func()
}

// WriteResources implements port.ResourceStore.
func (s *store) WriteResources(ctx context.Context, save, remove []port.Resource, notes ...port.Note) error {
	if s.resources != nil {
		return s.resources
	}
	write := func() error { return s.Store.WriteResources(ctx, save, remove, notes...) }
	if s.around != nil {
		return s.around(write)
	}
	return write()
}

// Create implements port.Store.
func (s *store) Create(ctx context.Context, first port.Write, key *port.IdempotencyKey, with ...port.Write) (*run.Run, error) {
	if s.down {
		return nil, fault.New(fault.Unavailable, "the store is down")
	}
	if s.around == nil {
		return s.Store.Create(ctx, first, key, with...)
	}
	var known *run.Run
	err := s.around(func() (err error) {
		known, err = s.Store.Create(ctx, first, key, with...)
		return err
	})
	return known, err
}

// Heartbeat implements port.Store.
func (s *store) Heartbeat(ctx context.Context, ref run.Ref, b run.Heartbeat) (run.Heartbeat, error) {
	if s.down || s.noHeartbeats {
		return run.Heartbeat{}, fault.New(fault.Unavailable, "the store is down")
	}
	return s.Store.Heartbeat(ctx, ref, b)
}

// RecordReception implements port.Store.
func (s *store) RecordReception(ctx context.Context, before, after port.Reception) error {
	if s.down || s.noHeartbeats {
		return fault.New(fault.Unavailable, "the store is down")
	}
	return s.Store.RecordReception(ctx, before, after)
}

// Reconcile implements port.Store.
func (s *store) Reconcile(ctx context.Context, tenant, pool string) (int, error) {
	s.reconciled = append(s.reconciled, pool)
	return s.Store.Reconcile(ctx, tenant, pool)
}

// SavePool implements port.PoolStore.
func (s *store) SavePool(ctx context.Context, p run.Pool, notes ...port.Note) error {
	save := func() error { return s.Store.SavePool(ctx, p, notes...) }
	if s.crash != nil {
		return s.crash(save)
	}
	return save()
}

// Commit implements port.Store.
func (s *store) Commit(ctx context.Context, writes ...port.Write) error {
	if s.crash != nil {
		return s.crash(func() error { return s.commit(ctx, writes...) })
	}
	return s.commit(ctx, writes...)
}

func (s *store) commit(ctx context.Context, writes ...port.Write) error {
	if s.down {
		return fault.New(fault.Unavailable, "the store is down")
	}
	if do := s.before; do != nil && len(writes) > 1 {
		s.before = nil
		do()
	}
	if pool := s.full; pool != "" && len(writes) > 1 {
		s.full = ""
		return &port.NoSlot{Pool: pool}
	}
	if do := s.beforeTimeout; do != nil && !writes[0].Heartbeat.Evaluated.IsZero() {
		s.beforeTimeout = nil
		do()
	}
	err := s.Store.Commit(ctx, writes...)
	if err == nil {
		var refs []run.Ref
		for _, w := range writes {
			refs = append(refs, w.Run.Ref())
		}
		s.commits = append(s.commits, refs)
	}
	return err
}

// executions is the engine with lost calls: lostRequests counts the next requests
// to drop by call, lostAnswers the next answers.
type executions struct {
	*engine.Engine
	lostRequests, lostAnswers map[string]int
	// first runs before each call; subject is an execution's name or a token.
	first func(call, subject string)
	// slow is how long each call takes by clock.
	slow  time.Duration
	clock *clock
}

func (e *executions) call(ctx context.Context, name, subject string, do func() error) error {
	if e.first != nil {
		e.first(name, subject)
	}
	if err := e.wait(ctx); err != nil {
		return err
	}
	if e.lostRequests[name] > 0 {
		e.lostRequests[name]--
		return fault.New(fault.Unavailable, "%s was lost", name)
	}
	err := do()
	if e.lostAnswers[name] > 0 {
		e.lostAnswers[name]--
		return fault.New(fault.Unavailable, "the answer to %s was lost", name)
	}
	return err
}

// wait advances the clock by slow, but not beyond the deadline of ctx.
func (e *executions) wait(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && e.slow > time.Until(deadline) {
		e.clock.to(e.clock.now.Add(time.Until(deadline).Round(time.Second)))
		return context.DeadlineExceeded
	}
	e.clock.to(e.clock.now.Add(e.slow))
	return ctx.Err()
}

// Start implements port.Executions.
func (e *executions) Start(ctx context.Context, name string, input json.RawMessage) error {
	return e.call(ctx, "Start", name, func() error { return e.Engine.Start(ctx, name, input) })
}

// Succeed implements port.Executions.
func (e *executions) Succeed(ctx context.Context, token string, output json.RawMessage) error {
	return e.call(ctx, "Succeed", token, func() error { return e.Engine.Succeed(ctx, token, output) })
}

// Fail implements port.Executions.
func (e *executions) Fail(ctx context.Context, token, name, cause string) error {
	return e.call(ctx, "Fail", token, func() error { return e.Engine.Fail(ctx, token, name, cause) })
}

// Heartbeat implements port.Executions.
func (e *executions) Heartbeat(ctx context.Context, token string) error {
	return e.call(ctx, "Heartbeat", token, func() error { return e.Engine.Heartbeat(ctx, token) })
}

// Stop implements port.Executions.
func (e *executions) Stop(ctx context.Context, name, cause string) error {
	return e.call(ctx, "Stop", name, func() error { return e.Engine.Stop(ctx, name, cause) })
}

// runner is a platform whose machines start when Wait is called.
type runner struct {
	recycler
	// calls counts the calls for one run.
	calls    int
	h        *fixture
	launched []*machine
	// during runs once in the next launch, after the machine exists; its error is
	// the launch's.
	during func(*machine) error
	// stuck: machines never start. ignoresSIGTERM: Stop has no effect.
	// indestructible: neither Wait nor Destroy ends a machine.
	stuck, ignoresSIGTERM, indestructible bool
	// limited: the platform limits creations to the tokens of a bucket that gets one
	// per second, burst at most. refused counts the ones above that.
	limited  bool
	tokens   float64
	burst    float64
	tokensAt time.Time
	refused  int
	// paces are the documented limits of several apps, which buckets enforces; nil for one
	// app without a documented burst.
	paces   []run.StartPace
	buckets map[string]*rate.Limiter
	// unreachable fails every inspection.
	unreachable bool
	// silent is a runner whose machines cannot be listed.
	silent  string
	stopped []string
	// warmStarts counts the starts of warm machines.
	warmStarts int
	// digest is that of the images of new machines.
	digest string
	// beforeWarm runs once before the next of them.
	beforeWarm func()
}

type machine struct {
	port.MachineStatus
	spec port.LaunchSpec
	// stuck: it does not start. late: it does while it is destroyed.
	stuck, late bool
	// hidden machines are in neither List nor Inspect.
	hidden bool
}

func newRunner(h *fixture) *runner { return &runner{h: h} }

// last returns the machine of the last launch.
func (r *runner) last() *machine {
	r.h.Helper()
	if len(r.launched) == 0 {
		r.h.Fatal("got no launched machine, want one")
	}
	return r.launched[len(r.launched)-1]
}

func (r *runner) find(at port.Machine) *machine {
	for _, m := range r.launched {
		if m.Key() == at.Key() {
			return m
		}
	}
	return nil
}

func (m *machine) exit(code int) {
	m.Phase, m.Exit = port.MachineGone, &port.Exit{Code: code}
}

// limitStarts limits creations to one per second with a burst; 0 allows none.
func (h *fixture) limitStarts(burst int) {
	h.runner.limited, h.runner.burst, h.runner.tokens, h.runner.tokensAt = true, float64(burst), float64(burst), h.clock.now
}

// StartLimits implements port.StartLimits.
func (r *runner) StartLimits(run.Placement) []run.StartPace {
	if r.paces != nil {
		return r.paces
	}
	return []run.StartPace{{App: "app", Interval: 1050 * time.Millisecond}}
}

// AppOf implements port.StartLimits.
func (r *runner) AppOf(run.Placement, string) string { return "app" }

// documentLimits gives each of n apps the documented limit of one creation per second with
// a burst.
func (h *fixture) documentLimits(n, burst int) {
	h.runner.buckets = map[string]*rate.Limiter{}
	for i := range n {
		app := fmt.Sprint("app-", i)
		h.runner.paces = append(h.runner.paces, run.StartPace{App: app, Interval: 1050 * time.Millisecond, Burst: burst})
		h.runner.buckets[app] = rate.NewLimiter(1, burst)
	}
}

// take takes a token of the platform's limit.
func (r *runner) take(app string) bool {
	now := r.h.clock.now
	if r.buckets != nil {
		bucket, known := r.buckets[app]
		if !known {
			r.h.Errorf("got a launch in app %q, want one of the pool's", app)
			return false
		}
		if bucket.AllowN(now, 1) {
			return true
		}
		r.refused++
		return false
	}
	r.tokens, r.tokensAt = min(r.burst, r.tokens+now.Sub(r.tokensAt).Seconds()), now
	if !r.limited || r.tokens >= 1 {
		r.tokens--
		return true
	}
	r.refused++
	return false
}

// call counts a call to the platform.
func (r *runner) call(ctx context.Context) {
	r.calls++
	port.CountCall(ctx, run.RunnerFly)
}

// Launch implements port.Runner. Names need not be unique.
func (r *runner) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	r.call(ctx)
	if !r.take(spec.App) {
		return port.MachineStatus{}, fault.New(fault.Throttled, "too many machines")
	}
	m := &machine{spec: spec, MachineStatus: port.MachineStatus{
		Machine: port.Machine{Runner: "fly", App: "app", ID: fmt.Sprintf("m%d", len(r.launched)+1)},
		Name:    spec.Name, Owner: spec.Owner, Phase: port.MachineCreating, Digest: r.digest, Address: fmt.Sprintf("fdaa::%d", len(r.launched)+1),
	}}
	r.launched = append(r.launched, m)
	if do := r.during; do != nil {
		r.during = nil
		if err := do(m); err != nil {
			return port.MachineStatus{}, err
		}
	}
	return m.MachineStatus, nil
}

// Inspect implements port.Runner.
func (r *runner) Inspect(ctx context.Context, at port.Machine) (port.MachineStatus, error) {
	r.call(ctx)
	m := r.find(at)
	if m == nil || m.hidden {
		return port.MachineStatus{}, port.ErrNotFound
	}
	return m.MachineStatus, nil
}

// Wait implements port.Runner. A wait for the end of a machine ends it.
func (r *runner) Wait(ctx context.Context, at port.Machine, phase port.MachinePhase, limit time.Duration) (port.MachineStatus, error) {
	if r.unreachable {
		r.h.clock.to(r.h.clock.now.Add(limit))
		return port.MachineStatus{}, fault.New(fault.Unavailable, "the runner does not answer")
	}
	m := r.find(at)
	switch {
	case m == nil || m.hidden || m.Phase == phase || m.Phase == port.MachineGone || phase == port.MachineRunning && m.StartFault != nil:
	case phase == port.MachineRunning && !r.stuck && !m.stuck:
		m.Phase = port.MachineRunning
	case phase == port.MachineGone && !r.indestructible:
		m.exit(0)
	default:
		r.h.clock.to(r.h.clock.now.Add(limit))
	}
	return r.Inspect(ctx, at)
}

// List implements port.Runner.
func (r *runner) List(_ context.Context, each func(port.MachineStatus) bool) error {
	for _, m := range r.launched {
		if (m.Phase != port.MachineGone || m.Kept.ID != "") && !m.hidden && !each(m.MachineStatus) {
			break
		}
	}
	r.listLagging(each)
	if r.silent != "" {
		return fault.New(fault.Unavailable, "runner %s: no answer", r.silent)
	}
	return nil
}

// ListOf implements port.RunnerLists.
func (r *runner) ListOf(ctx context.Context, runner string, each func(port.MachineStatus) bool) error {
	err := r.List(ctx, each)
	if runner != r.silent {
		return nil
	}
	return err
}

// Stop implements port.Runner.
func (r *runner) Stop(ctx context.Context, at port.Machine, _ time.Duration) error {
	r.call(ctx)
	r.stopped = append(r.stopped, at.ID)
	if m := r.find(at); m != nil && !r.ignoresSIGTERM {
		m.Phase, m.Exit = port.MachineGone, &port.Exit{Code: 143, Signal: 15, Requested: true}
	}
	return nil
}
