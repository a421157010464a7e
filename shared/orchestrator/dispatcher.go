package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Engines returns the engine of a replica. It may return the same one for each call.
type Engines func(place run.EnginePlace, replica run.EngineReplica) (port.Engine, error)

// DispatcherConfig configures a Dispatcher.
type DispatcherConfig struct {
	// ID is the worker id, which is that of this dispatcher alone.
	ID string
	// Alone: there is no other dispatcher, so that a task of another id is lost.
	Alone bool
	// Batch is how long tokens are collected for one append, after the first token.
	Batch time.Duration
}

// Dispatcher is the worker of inference tasks: it streams from the engines' replicas into
// the Feed, and commits the facts about the runs. It starts the tasks that get a slot of
// their pool by a commit of its process, and those that Conduct finds. It is safe for
// concurrent use.
type Dispatcher struct {
	*Inference
	cfg       DispatcherConfig
	artifacts *Artifacts
	replicas  *replicas

	mu     sync.Mutex
	shift  *shift              // nil for a dispatcher that serves all pools until Run ends
	active map[string]*serving // by task id
	doing  int                 // goroutines of start
	ready  chan struct{}       // closed when Run has begun
	ctx    context.Context     //nolint:containedctx // of the goroutines that serve tasks; Run sets it
	over   bool                // Run has ended
	tasks  sync.WaitGroup
}

// serving is an attempt that the dispatcher serves. Its goroutine waits for the engine most
// of the time, so the record, which is large, is not on its stack.
type serving struct {
	ref     run.Ref
	attempt int
	session string // empty for a task outside of a session
	stop    context.CancelCauseFunc
	// generates: the engine has sent a piece.
	generates atomic.Bool

	// Only the goroutine that serves the attempt has these fields.
	run     run.Run
	replica *lease
	answer  *answerWriter
	used    run.Generation
}

func newServing(r run.Run) *serving {
	return &serving{ref: r.Ref(), attempt: r.Attempt.Number, session: r.Work.Inference.SessionID, run: r}
}

var _ port.Observer = (*Dispatcher)(nil)

// NewDispatcher returns a dispatcher. It serves tasks while Run runs.
func NewDispatcher(tasks *Inference, artifacts *Artifacts, engines Engines, cfg DispatcherConfig) *Dispatcher {
	d := &Dispatcher{
		Inference: tasks, cfg: cfg, artifacts: artifacts, replicas: newReplicas(engines, tasks.clock, tasks.log, tasks.record), active: map[string]*serving{}, ready: make(chan struct{}),
	}
	tasks.observers = append(tasks.observers, d)
	tasks.dispatcher, tasks.resume = d, d.continues
	tasks.ReadTranscripts(artifacts)
	return d
}

// Run serves tasks until ctx ends, and returns when it serves none. Tasks that it serves
// then are lost; the next dispatcher ends them or tries them again, as after a crash.
func (s *Dispatcher) Run(ctx context.Context) {
	s.mu.Lock()
	s.ctx = ctx
	s.mu.Unlock()
	close(s.ready)
	<-ctx.Done()
	s.mu.Lock()
	s.ctx, s.over = nil, true
	s.mu.Unlock()
	s.tasks.Wait()
}

// stopped reports whether the process stops: Run has ended, or is about to.
func (s *Dispatcher) stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over || s.ctx != nil && s.ctx.Err() != nil
}

// Ready is closed when Run has begun. Commits before are found by a sweep.
func (s *Dispatcher) Ready() <-chan struct{} { return s.ready }

// Await returns when the run has changed since it was read.
func (s *Dispatcher) Await(ctx context.Context, r run.Run) error {
	for {
		changed, end := s.changes.watch(r.Ref())
		now, err := s.store.Load(ctx, r.Ref())
		if err != nil || now.Version != r.Version {
			end()
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
		end()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Committed implements port.Observer.
func (s *Dispatcher) Committed(_ context.Context, r run.Run, _ []run.Event) {
	if r.Work.Inference == nil {
		return
	}
	if cancelled := r.Cancel != nil && r.State != run.Terminating || r.State == run.Cancelled; cancelled {
		s.interrupt(r)
	}
	if s.needs(r) {
		s.startConduct(r.Ref())
	}
}

// needs reports whether the dispatcher has something to do for a run in this state.
func (s *Dispatcher) needs(r run.Run) bool {
	return needsDispatcher(r, func() bool { return s.serves(r) })
}

// needsDispatcher reports whether a dispatcher has something to do for a run in this state.
func needsDispatcher(r run.Run, served func() bool) bool {
	switch r.State {
	case run.Pending:
		return r.RetryOf != "" && r.AwaitsAdmission() // Create admits the others
	case run.ContainerCreating:
		return !r.Queued()
	case run.Terminating, run.Retrying:
		return !served()
	case run.Running:
		return r.Cancel != nil && !served()
	case run.Cancelled, run.Failed:
		return true // its stream may have no end
	}
	return false
}

func (s *Dispatcher) serves(r run.Run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.active[r.TaskID]
	return known != nil && known.attempt == r.Attempt.Number
}

// generatesFor reports whether an engine generates an answer of a session, and has sent its
// first piece.
func (s *Dispatcher) generatesFor(tenant, session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.active {
		if t.ref.Tenant == tenant && t.session == session && t.generates.Load() {
			return true
		}
	}
	return false
}

// errCancelled is the cause of the end of a request whose run was cancelled.
var errCancelled = errors.New("the task was cancelled")

// interrupt closes the request of a task to the engine.
func (s *Dispatcher) interrupt(r run.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.active[r.TaskID]; known != nil {
		known.stop(errCancelled)
	}
}

// start calls do in a goroutine of the dispatcher, unless Run has ended.
func (s *Dispatcher) start(do func(context.Context)) (started bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil || s.ctx.Err() != nil {
		return false
	}
	ctx := s.ctx
	s.doing++
	s.tasks.Go(func() {
		do(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.doing--
	})
	return true
}

// startConduct calls Conduct in a goroutine of the dispatcher.
func (s *Dispatcher) startConduct(ref run.Ref) {
	s.start(func(ctx context.Context) {
		s.warnConduct(ctx, ref, s.Conduct(ctx, ref))
	})
}

func (s *Dispatcher) warnConduct(ctx context.Context, ref run.Ref, err error) {
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "cannot continue an inference task; a sweep does", "run_id", ref.ID, "error", err.Error())
	}
}

// continues continues a run that is overdue.
func (s *Dispatcher) continues(_ context.Context, r run.Run) { s.startConduct(r.Ref()) }

// Conduct does what a run of kind inference needs next, in every state. It may be called at
// any time, by any number of processes; a sweep calls it for runs that are overdue.
func (s *Dispatcher) Conduct(ctx context.Context, ref run.Ref) error {
	for range conductSteps {
		next, again, err := s.step(ctx, ref)
		if next != nil {
			again, err = s.serve(ctx, next)
		}
		if err != nil || !again {
			return err
		}
	}
	return nil
}

// conductSteps is more than the states that a run passes in one call.
const conductSteps = 16

// step does one step for a run, or returns the attempt that is to be served. again reports
// that the next one can follow at once.
func (s *Dispatcher) step(ctx context.Context, ref run.Ref) (next *serving, again bool, err error) {
	r, err := s.store.Load(ctx, ref)
	switch {
	case errors.Is(err, port.ErrNotFound):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("cannot load the task: %w", err)
	case r.State == run.ContainerCreating && !r.Queued():
		return newServing(r), false, nil
	}
	again, err = s.stepOf(ctx, r)
	return nil, again, err
}

// stepOf does one step for a run that has no attempt to be served.
func (s *Dispatcher) stepOf(ctx context.Context, r run.Run) (again bool, err error) {
	now := s.now()
	switch {
	case r.State.Terminal():
		return false, s.ensureEnd(ctx, r.Ref())
	case r.State == run.Retrying, r.State == run.PreRun:
		after, err := s.applyTo(ctx, r, is(run.Due{}))
		return err == nil && after.State == run.Pending, err
	case r.Queued():
		if now.Before(r.QueueBy()) {
			return false, s.checked(ctx, r)
		}
		_, err = s.applyTo(ctx, r, is(run.Evaluated{Generation: r.Wait.Generation}))
		return err == nil, err
	case r.State == run.Pending:
		after, err := s.takeSlot(ctx, r, StepInput{})
		return err == nil && !after.Queued() && !s.serves(after), err
	case r.State == run.Running:
		return s.running(ctx, r)
	case r.State == run.Terminating:
		if s.serves(r) {
			return false, nil
		}
		return true, s.settle(ctx, r, nil)
	}
	return false, nil
}

// checked moves the time of the next check of an overdue run.
func (s *Dispatcher) checked(ctx context.Context, r run.Run) error {
	if now := s.now(); r.Execution.ActBy.IsZero() || now.Before(r.Execution.ActBy) {
		return nil
	}
	_, err := s.applyTo(ctx, r, is(run.ExecutionChecked{Done: true}))
	return err
}

// running does what a running task needs that this dispatcher does not serve: its
// dispatcher may live, be late, or be lost.
func (s *Dispatcher) running(ctx context.Context, r run.Run) (again bool, err error) {
	if s.serves(r) {
		return false, nil
	}
	head, state, err := s.answers.read(ctx, r)
	if err != nil {
		return false, err
	}
	switch {
	case state.Ended:
		last, err := s.answers.last(ctx, r, head)
		if err != nil {
			return false, err
		}
		return true, s.ended(ctx, r, last)
	case r.Cancel != nil:
		last, err := s.answers.conclude(ctx, r, endOf(r))
		if err != nil {
			return false, err
		}
		return true, s.ended(ctx, r, last)
	case !s.now().Before(r.RunBy()):
		return true, s.fail(ctx, r, fault.New(fault.DeadlineUnmet, "the task had no end after its deadline of %s", r.Work.Inference.Within))
	case s.cfg.Alone && r.Attempt.WorkerID != s.cfg.ID:
		return true, s.fail(ctx, r, fault.New(fault.WorkerReset, "the dispatcher that served the task is gone"))
	}
	return false, s.checked(ctx, r)
}
