package inferences

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/app/answer"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/trace"
	"github.com/sortie-dev/sortie/shared/port"
)

// ignoreInterrupt calls serve. If interrupt has cancelled ctx, it returns no error and again:
// the next step ends the task or the attempt.
func ignoreInterrupt(ctx context.Context, serve func() (again bool, err error)) (again bool, err error) {
	again, err = serve()
	if cause := context.Cause(ctx); err != nil && (errors.Is(cause, errCancelled) || errors.Is(cause, errAttemptEnded)) {
		return true, nil
	}
	return again, err
}

// acquireAndCommit acquires a replica for an attempt and commits that this dispatcher serves it.
// If serves is false, again reports that the run needs a further step.
func (s *Dispatcher) acquireAndCommit(ctx context.Context, t *serving) (serves, again bool, err error) {
	r := t.run
	starting := r
	leaves, err := s.hasFallback(ctx, r)
	if err != nil {
		return false, false, err
	}
	if leaves {
		starting.Attempt.StartBy = s.now()
	}
	t.replica, err = s.replicas.Take(ctx, starting, func(ctx context.Context) (platform.Pool, error) { return s.servedPool(ctx, r) })
	if err != nil {
		if ctx.Err() != nil {
			return false, false, err
		}
		why, isFault := errors.AsType[*fault.Fault](err)
		if !isFault {
			return false, false, err // a sweep retries
		}
		ctx = context.WithoutCancel(ctx) // the commit of the failure interrupts ctx
		if err := s.fail(ctx, r, why); err != nil {
			return false, false, err
		}
		return false, true, s.settleNow(ctx, r, nil)
	}
	r, err = s.runs.Apply(ctx, r, run.WorkerContacted{Attempt: r.Attempt.Number, WorkerID: s.cfg.ID, Replica: t.replica.ID(), Started: true})
	if err != nil || r.State != run.Running || r.Attempt.WorkerID != s.cfg.ID {
		if f := fault.Of(err); f != nil && (f.Code == fault.WorkerMismatch || f.Code == fault.AttemptMismatch || f.Code == fault.TaskAlreadyTerminal || f.Code == fault.TaskExpired) {
			err = nil // another dispatcher serves it, or it was cancelled
		}
		return false, err == nil, err
	}
	t.run = r
	return true, false, nil
}

// servedPool returns the pool of a run with the replicas to which its tasks are sent.
func (s *engines) servedPool(ctx context.Context, r run.Run) (platform.Pool, error) {
	pool, err := s.capacity.Pools.ForRun(ctx, r.Tenant, r.Slot.Pool)
	if err != nil {
		return pool, err
	}
	return s.capacity.Replicas.Served(ctx, pool)
}

// register registers an attempt that the dispatcher serves. It returns false if the dispatcher
// already serves the task, or if its poolServer does not accept the task.
func (s *attempts) register(t *serving, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active[t.run.TaskID] != nil || !s.poolServer.accepts(t.run, len(s.active), now) {
		return false
	}
	s.active[t.run.TaskID] = t
	return true
}

func (s *attempts) unregister(t *serving) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.active, t.run.TaskID)
	s.poolServer.readSlots()
}

// beat sends the heartbeats of an attempt until it is stopped.
func (s *Dispatcher) beat(ctx context.Context, t *serving) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	stopped := clock.Every(s.clock, t.run.Policy.HeartbeatInterval, func() { s.heartbeat(ctx, t) })
	return func() { cancel(); stopped() }
}

func (s *Dispatcher) heartbeat(ctx context.Context, t *serving) {
	known, err := s.store.Heartbeat(ctx, t.ref, run.Heartbeat{Attempt: t.attempt, WorkerID: s.cfg.ID, At: s.now(), Received: 1})
	switch {
	case err == nil && known.Cancel != nil: // another process has requested it
		t.stop(errCancelled)
	case errors.Is(err, port.ErrNotFound): // the attempt has ended
		err = s.interruptStored(ctx, t.ref)
	}
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "cannot store a heartbeat of the dispatcher", "run_id", t.ref.ID, "attempt", t.attempt, "error", err.Error())
	}
}

// interruptStored loads a run that another process has changed, and calls interrupt.
func (s *Dispatcher) interruptStored(ctx context.Context, ref run.Ref) error {
	r, err := s.store.Load(ctx, ref)
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		return fmt.Errorf("cannot load the task: %w", err)
	}
	s.interrupt(r)
	return nil
}

// stream streams the answer of a replica to an attempt that this dispatcher serves. failure is
// the reason that the answer is incomplete.
func (s *answering) stream(ctx context.Context, t *serving) (failure, err error) {
	if err := s.openAnswer(ctx, t); err != nil {
		return nil, err
	}
	if failure = t.answer.Refused(); failure != nil {
		return failure, nil
	}
	t.used.RequestedAt = s.now()
	failure = s.generate(ctx, t)
	t.replica.RecordResult(failure)
	t.used.DecodeMS = s.now().Sub(t.used.RequestedAt).Milliseconds()
	if failure != nil {
		t.used.TokensOut = 0 // tokens that are not in the stream do not count
	}
	t.used.TokensOut, t.used.FirstTokenAt = t.answer.Produced(t.used.TokensOut), t.answer.FirstAt()
	s.logServed(ctx, t, failure)
	return t.replica.ForTenant(t.run.Tenant, failure), nil
}

// openAnswer creates the writer of the answer of an attempt.
func (s *answering) openAnswer(ctx context.Context, t *serving) (err error) {
	t.used = run.Generation{Replica: t.replica.ID(), EngineVersion: t.replica.Capabilities().Version}
	r := &t.run
	t.answer, err = s.answers.NewWriter(ctx, r, s.batch, func(ctx context.Context, tokens int, now time.Time) inference.Metrics {
		return s.metricsOf(ctx, *r, tokens, now)
	})
	return err
}

func (s *attempts) stopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ctx == nil || s.ctx.Err() != nil
}

// generate sends the request to the replica and appends the answer to the stream. Its goroutine
// waits here most of the time, so it and its callers have little on their stacks.
func (s *answering) generate(ctx context.Context, t *serving) error {
	ask, err := s.requestOf(ctx, t)
	if err != nil {
		return err
	}
	ctx = t.beginAnswer(ctx)
	defer t.answer.Stop(nil)
	err = s.retryWhileBusy(ctx, t, ask)
	s.checkUsage(ctx, t)
	return t.generated(ctx, s.clock, err)
}

// beginAnswer starts the writer of the answer, and returns the context of the request to the
// engine. A failed append cancels that context.
func (t *serving) beginAnswer(ctx context.Context) context.Context {
	asking, stop := context.WithCancelCause(port.WithTraceParent(ctx, traceParent(t)))
	t.answer.Begin(asking, stop)
	return asking
}

// generated flushes the answer and returns the reason that it is incomplete, or nil. err is the
// error of the request, or nil.
func (t *serving) generated(asking context.Context, c clock.Clock, err error) error {
	flushed := t.answer.Flush()
	if cause := context.Cause(asking); cause != nil && asking.Err() != nil {
		return cause
	}
	if err == nil {
		err = flushed
	}
	work := t.run.Work.Inference
	if now := c.Now(); fault.Is(err, fault.DecodeTimeout) {
		if !now.Before(t.run.AnswerBy()) {
			err = fault.Wrap(err, fault.DeadlineUnmet, "the answer was not complete at the deadline of %s", work.Within)
		} else if t.most > 0 && !now.Before(t.until) {
			err = fault.Wrap(err, fault.DeadlineUnmet, "the answer was not complete after %s, the limit of an attempt here", t.most)
		}
	}
	if err == nil {
		t.used.TokensIn = cmp.Or(t.used.TokensIn, work.PromptTokens)
		if port.Workload(work.Workload) != port.WorkloadCompletion {
			t.used.Finish = string(port.FinishStop)
		}
	}
	return err
}

// requestOf returns a function that sends the request of a task to its replica, and the answer
// to the writer. Fault: DeadlineUnmet after the deadline of the task.
func (s *answering) requestOf(ctx context.Context, t *serving) (ask func(context.Context) error, err error) {
	q, err := s.Request(ctx, t.run)
	if err != nil {
		return nil, err
	}
	if err := needImages(t, q); err != nil {
		return nil, err
	}
	if err := s.withImages(ctx, t.run, q); err != nil {
		return nil, err
	}
	left := t.run.AnswerBy().Sub(s.now())
	if left <= 0 {
		return nil, fault.New(fault.DeadlineUnmet, "the deadline of %s was over before the engine began", t.run.Work.Inference.Within)
	}
	if s.most > 0 && s.most < left {
		left, t.most, t.until = s.most, s.most, s.now().Add(s.most)
	}
	t.longest, t.prompts = q.LongestPrompt(), max(len(q.Prompts), 1)
	limits := port.GenerationLimits{First: min(left, firstPiece), Gap: min(left, pieceGap), Total: left}
	switch port.Workload(t.run.Work.Inference.Workload) {
	case port.WorkloadCompletion:
		if n := q.Answers(); n > 1 {
			return func(ctx context.Context) error { return s.severalAnswers(ctx, t, q, limits) }, nil
		}
		g := t.generation(q, limits)
		return func(ctx context.Context) error { return t.completion(ctx, g) }, nil
	case port.WorkloadEmbedding:
		return func(ctx context.Context) error { return t.embeddings(ctx, q, limits) }, nil
	case port.WorkloadRerank:
		return func(ctx context.Context) error { return t.ranking(ctx, q, limits) }, nil
	}
	return nil, fault.New(fault.Internal, "unknown workload %q", t.run.Work.Inference.Workload)
}

func traceParent(t *serving) string { return trace.OfEngine(t.run).String() }

// embeddings requests embeddings and adds them to the answer.
func (t *serving) embeddings(ctx context.Context, q *inference.Request, limits port.GenerationLimits) error {
	done := t.replica.CountRequest()
	defer done()
	found, err := t.replica.Engine().Embed(ctx, port.Embedding{Model: t.model(), Inputs: q.Input, Tokens: q.Tokens, Dimensions: q.VectorLength, Limits: limits})
	t.used.TokensIn = found.TokensIn
	for i, vector := range found.Vectors {
		t.answer.Result(inference.Result{Index: i, Embedding: vector})
	}
	return err
}

// ranking requests the scores of documents and adds them to the answer.
func (t *serving) ranking(ctx context.Context, q *inference.Request, limits port.GenerationLimits) error {
	done := t.replica.CountRequest()
	defer done()
	found, err := t.replica.Engine().Rerank(ctx, port.Reranking{Model: t.model(), Query: q.Query, Documents: q.Input, Limits: limits})
	t.used.TokensIn = found.TokensIn
	for i, score := range found.Scores {
		t.answer.Result(inference.Result{Index: i, Score: &score})
	}
	return err
}

// completion requests a completion and adds its pieces to the answer.
func (t *serving) completion(ctx context.Context, g *port.Generation) error {
	done := t.replica.CountRequest()
	defer done()
	end, err := t.replica.Engine().Generate(ctx, *g, t.piece)
	return t.completed(end, err)
}

func (t *serving) completed(end port.GenerationEnd, err error) error {
	if errors.Is(err, answer.ErrSpent) { // the engine exceeds MaxTokens
		end.TokensOut, end.Finish, err = t.run.Work.Inference.MaxTokens, port.FinishLength, nil
	}
	t.used.TokensIn, t.used.CachedTokens, t.used.TokensOut, t.used.ReasoningTokens, t.used.Finish = end.TokensIn, end.CachedTokens, end.TokensOut, end.ReasoningTokens, string(end.Finish)
	return err
}

// piece adds a piece of the answer. The first one shows that the replica works.
func (t *serving) piece(p port.Piece) error {
	if !t.generates.Swap(true) {
		t.replica.MarkReady()
	}
	return t.answer.Piece(p)
}

// generation returns the request for a completion.
func (t *serving) generation(q *inference.Request, limits port.GenerationLimits) *port.Generation {
	return &port.Generation{
		Model: t.model(), OpenEnd: t.run.Work.Inference.OpenEnd, Prompt: q.Prompt, Messages: q.Messages, Stop: q.Stop, Seed: t.replica.Seed(q.Seed),
		MaxTokens: q.Fitting(t.run.Work.Inference.MaxTokens, t.replica.Capabilities().ContextTokens), Temperature: q.Temperature, TopP: q.TopP, Options: q.Options, Limits: limits,
	}
}

// model returns the engine's name of the model of the task; empty if it is unknown.
func (t *serving) model() string {
	if name := t.run.Work.Inference.EngineModel; name != "" {
		return name
	}
	if can := t.replica.Capabilities(); len(can.Models) > 0 {
		return can.Models[0]
	}
	return ""
}

// The time limits of an engine, besides the deadline of the task: to the first piece, and
// between two pieces.
const (
	firstPiece = 2 * time.Minute
	pieceGap   = 30 * time.Second
)
