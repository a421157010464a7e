package inferences

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/shared/app/answer"
	"github.com/sortie-dev/sortie/shared/app/balance"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
)

// DispatcherConfig configures a Dispatcher.
type DispatcherConfig struct {
	// ID is the worker id. No other dispatcher has it.
	ID string
	// Alone: there is no other dispatcher, so a task with another worker id is lost.
	Alone bool
	// Batch is the time for which tokens after the first one are collected for one append.
	Batch time.Duration
	// MostServed is the longest time for the answer of an attempt; 0 means the deadline of the
	// task.
	MostServed time.Duration
}

// Dispatcher is the worker of inference tasks: it streams from the engines' replicas into the
// Feed, and commits the facts about the runs. It starts the tasks that acquire a slot of their
// pool in a commit of its process, and those for which Advance is called. It is safe for
// concurrent use.
type Dispatcher struct {
	*Inference
	*attempts
	*engines
	*answering
	*endings
	cfg    DispatcherConfig
	repeat repeats
}

// engines are the replicas of pools, as this process knows them.
type engines struct {
	*Inference
	replicas *balance.Replicas
}

// answering streams the answers of engines.
type answering struct {
	*Inference
	// batch, most and alone are DispatcherConfig.Batch, MostServed and Alone.
	batch, most time.Duration
	alone       bool
}

// endings ends attempts, tasks and their streams.
type endings struct {
	*engines
	artifacts TranscriptStore
}

// attempts are the attempts that a dispatcher serves, and its goroutines.
type attempts struct {
	mu                sync.Mutex
	poolServer        *poolServer         // nil for a dispatcher that serves all pools until Run ends
	active            map[string]*serving // by task id
	startedGoroutines int                 // goroutines of start that have not ended
	ready             chan struct{}       // closed when Run has begun
	ctx               context.Context     //nolint:containedctx // of the goroutines that serve tasks; Run sets it
	runEnded          bool                // Run has ended
	goroutines        sync.WaitGroup      // of start
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

	// Only the goroutine that serves the attempt uses these fields.
	run     run.Run
	replica *balance.Lease
	answer  *answer.Writer
	used    run.Generation
	// longest is the maximum number of tokens that the prompts can have, prompts their number.
	longest, prompts int
	// answers is the number of answers that are complete.
	answers int
	// most and until limit the answer, if an attempt has less time than the task; otherwise most
	// is 0.
	most  time.Duration
	until time.Time
}

func newServing(r run.Run) *serving {
	return &serving{ref: r.Ref(), attempt: r.Attempt.Number, session: r.Work.Inference.SessionID, run: r}
}

// NewDispatcher returns a dispatcher that serves tasks while Run runs. runs returns the runs of a
// process whose commits call the dispatcher, and their store. The streams of the tasks are in feed. open returns
// the engine of a replica.
func NewDispatcher(
	runs func(*Dispatcher) (Runs, Store), hex func(n int) string, feed port.AnswerFeed, models Catalog, artifacts TranscriptStore, prompts Prompts,
	open balance.Engines, record series.Recorder, cfg DispatcherConfig, config Config,
) *Dispatcher {
	d := &Dispatcher{
		attempts: &attempts{active: map[string]*serving{}, ready: make(chan struct{})}, cfg: cfg, repeat: repeats{runs: map[run.Ref]bool{}},
	}
	created, store := runs(d)
	d.Inference = New(created, store, hex, feed, models, artifacts, prompts, record, config)
	d.Inference.stopped = d.attempts.stopped
	d.engines = &engines{d.Inference, balance.NewReplicas(open, d.clock, d.log, record)}
	d.answering, d.endings = &answering{d.Inference, cfg.Batch, cfg.MostServed, cfg.Alone}, &endings{d.engines, artifacts}
	return d
}

// OfPool returns the health of the replicas of a pool.
func (s *engines) OfPool(ctx context.Context, p platform.Pool) ([]balance.ReplicaHealth, error) { //nolint:unparam // of pools.EngineHealths
	return s.replicas.Healths(ctx, p), nil
}

// Slots returns the smallest number of slots that a replica of a pool reports; 0 if none does.
func (s *engines) Slots(ctx context.Context, p platform.Pool) int {
	return s.replicas.ReportedSlots(ctx, p)
}

// Run serves tasks until ctx ends, and returns after its last goroutine has ended. Tasks that
// it serves when ctx ends are lost. The next dispatcher ends or retries them, as after a crash.
func (s *attempts) Run(ctx context.Context) {
	s.mu.Lock()
	s.ctx = ctx
	s.mu.Unlock()
	close(s.ready)
	<-ctx.Done()
	s.mu.Lock()
	s.ctx, s.runEnded = nil, true
	s.mu.Unlock()
	s.goroutines.Wait()
}

// stopped reports whether the process stops: Run has ended, or is about to.
func (s *attempts) stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runEnded || s.ctx != nil && s.ctx.Err() != nil
}

// Ready returns a channel that is closed when Run has begun. Commits before that are left to a
// sweep.
func (s *attempts) Ready() <-chan struct{} { return s.ready }

// Await returns when the stored run is newer than r. It waits for commits of this process only.
func (s *Dispatcher) Await(ctx context.Context, r run.Run) error {
	for {
		changed, end := s.runs.Watch(r.Ref())
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
func (s *Dispatcher) Committed(_ context.Context, r run.Run, events []run.Event) {
	if r.Work.Inference == nil {
		return
	}
	s.interrupt(r)
	if awaitsShadow(r, events) {
		s.startShadow(r)
	}
	if s.needsWork(r) {
		s.startAdvance(r.Ref())
	}
}

// needsWork reports whether the dispatcher has something to do for a run in this state.
func (s *Dispatcher) needsWork(r run.Run) bool {
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
		return true // the stream may lack its last record
	case run.Completed:
		return r.Discarded && !r.AnswerDue().IsZero()
	}
	return false
}

func (s *attempts) serves(r run.Run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.active[r.TaskID]
	return known != nil && known.attempt == r.Attempt.Number
}

// GeneratesFor reports whether an engine generates an answer of a session, and has sent its
// first piece.
func (s *attempts) GeneratesFor(tenant, session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.active {
		if t.ref.Tenant == tenant && t.session == session && t.generates.Load() {
			return true
		}
	}
	return false
}

// The causes with which interrupt cancels the context of a served attempt.
var (
	errCancelled    = errors.New("the task was cancelled")
	errAttemptEnded = errors.New("the attempt has ended")
)

// interrupt stops serving an attempt that was cancelled or has ended: it ends the wait for a
// replica or the request to an engine. r is the stored run.
func (s *attempts) interrupt(r run.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.active[r.TaskID]
	switch {
	case known == nil || known.attempt > r.Attempt.Number:
	case r.Cancel != nil, r.State == run.Cancelled:
		known.stop(errCancelled)
	case r.State == run.Terminating, r.State.Terminal(), known.attempt < r.Attempt.Number:
		known.stop(errAttemptEnded)
	}
}

// start calls do in a goroutine of the dispatcher, unless Run has ended.
func (s *attempts) start(do func(context.Context)) (started bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil || s.ctx.Err() != nil {
		return false
	}
	ctx := s.ctx
	s.startedGoroutines++
	s.goroutines.Go(func() {
		do(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.startedGoroutines--
	})
	return true
}
