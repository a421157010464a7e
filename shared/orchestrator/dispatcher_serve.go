package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/inference"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
	"github.com/sortie-dev/sortie/shared/trace"
)

// serve serves the attempt of a run that has a slot: it takes a replica, streams its answer
// and ends the attempt. again reports that the run needs a further step.
func (s *Dispatcher) serve(ctx context.Context, r run.Run) (again bool, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if !s.begin(r, stop) {
		s.passOn(ctx, r)
		return false, nil
	}
	defer s.end(r)
	again, err = s.attempt(ctx, r)
	if err != nil && errors.Is(context.Cause(ctx), errCancelled) {
		return true, nil // the next step ends the task
	}
	return again, err
}

// attempt serves the attempt of a run until ctx ends.
func (s *Dispatcher) attempt(ctx context.Context, r run.Run) (again bool, err error) {
	replica, err := s.replicas.take(ctx, r, func(ctx context.Context) (run.Pool, error) {
		pool, err := s.pools.forRun(ctx, r.Tenant, r.Slot.Pool)
		if err != nil {
			return pool, err
		}
		return s.sets.served(ctx, pool)
	})
	if err != nil {
		if ctx.Err() != nil {
			return false, err
		}
		why, isFault := errors.AsType[*fault.Fault](err)
		if !isFault {
			return false, err // a sweep repeats it
		}
		if err := s.fail(ctx, r, why); err != nil {
			return false, err
		}
		return true, s.settleNow(ctx, r)
	}
	defer replica.release()
	r, err = s.applyTo(ctx, r, is(run.WorkerContacted{Attempt: r.Attempt.Number, WorkerID: s.cfg.ID, Replica: replica.id, Started: true}))
	if err != nil || r.State != run.Running || r.Attempt.WorkerID != s.cfg.ID {
		if f := fault.Of(err); f != nil && (f.Code == fault.WorkerMismatch || f.Code == fault.AttemptMismatch || f.Code == fault.TaskAlreadyTerminal || f.Code == fault.TaskExpired) {
			err = nil // another dispatcher serves it, or it was cancelled
		}
		return err == nil, err
	}
	beats := s.beat(ctx, r)
	defer beats()
	return true, s.stream(ctx, r, replica)
}

// begin notes that the dispatcher serves an attempt; false if it does already, or does not
// take the task in its shift.
func (s *Dispatcher) begin(r run.Run, stop context.CancelCauseFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active[r.TaskID] != nil || !s.shift.accepts(r, len(s.active), s.now()) {
		return false
	}
	s.active[r.TaskID] = &serving{attempt: r.Attempt.Number, stop: stop}
	return true
}

func (s *Dispatcher) end(r run.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.active, r.TaskID)
	s.shift.wake()
}

// beat sends the heartbeats of an attempt until it is stopped.
func (s *Dispatcher) beat(ctx context.Context, r run.Run) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		for clock.Sleep(ctx, s.clock, r.Policy.HeartbeatInterval) == nil {
			known, err := s.store.Heartbeat(ctx, r.Ref(), run.Heartbeat{Attempt: r.Attempt.Number, WorkerID: s.cfg.ID, At: s.now(), Received: 1})
			if err == nil && known.Cancel != nil { // another process has requested it
				s.interrupt(r)
			}
			if err != nil && ctx.Err() == nil && !errors.Is(err, port.ErrNotFound) {
				s.warn(ctx, r, "cannot store a heartbeat of the dispatcher", err)
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

// stream streams the answer of a replica to a run that this dispatcher serves, and ends the
// attempt and, if nothing may follow, the run.
func (s *Dispatcher) stream(ctx context.Context, r run.Run, replica *lease) error {
	used := run.Generation{Replica: replica.id, EngineVersion: replica.capabilities().Version}
	w, err := s.writer(ctx, r)
	if err != nil {
		return err
	}
	began := s.now()
	var failure error
	if w.refused == nil {
		used.AskedAt = began
		failure = s.generate(ctx, r, replica, w, &used)
		replica.noted(failure)
		used.DecodeMS = s.now().Sub(began).Milliseconds()
		used.TokensOut, used.FirstTokenAt = w.produced(used.TokensOut), w.firstAt
		s.logServed(ctx, r, used, failure)
	} else {
		failure = w.refused
	}
	// What follows is short and must happen, also if the task was cancelled.
	ctx = context.WithoutCancel(ctx)
	if s.stopping() {
		return nil // the next dispatcher finds the task as after a crash
	}
	r.Generation = &used
	if failure == nil {
		end := &inference.End{TokensOut: used.TokensOut, DecodeMS: used.DecodeMS, TokensIn: used.TokensIn, Finish: used.Finish}
		if _, err := w.close(ctx, inference.Record{Attempt: r.Attempt.Number, End: end}); err != nil {
			return err
		}
		return s.settle(ctx, r, nil)
	}
	if errors.Is(failure, errStreamEnded) || errors.Is(failure, errCancelled) || errors.Is(failure, context.Canceled) {
		return s.settleEnded(ctx, r, replica)
	}
	why, isFault := errors.AsType[*fault.Fault](failure)
	if !isFault {
		return failure // the store does not answer; a sweep continues
	}
	why = fault.New(why.Code, "%s", why.Message)
	if w.hasContent() {
		record := inference.Record{Attempt: r.Attempt.Number, Error: &inference.Failure{
			Code: streamCode(why.Code), Message: why.Message, Engine: r.Work.Inference.Engine, TokensOut: used.TokensOut, DecodeMS: used.DecodeMS,
		}}
		if _, err := w.close(ctx, record); err != nil {
			return err
		}
		return s.settleEnded(ctx, r, replica)
	}
	after, err := s.applyTo(ctx, r, is(run.GenerationEnded{Attempt: r.Attempt.Number, Fault: why, Generation: &used}))
	if err != nil {
		return err
	}
	return s.settle(ctx, after, replica.awaitFree)
}

// settleEnded settles a run whose stream has ended: the attempt ends, and the
// slot is released when the engine has none for it any more.
func (s *Dispatcher) settleEnded(ctx context.Context, r run.Run, replica *lease) error {
	used := r.Generation
	r, err := s.store.Load(ctx, r.Ref())
	if err != nil {
		return fmt.Errorf("cannot load the task: %w", err)
	}
	last, err := s.answers.conclude(ctx, r, endOf(r))
	if err != nil {
		return err
	}
	r.Generation = used
	if err := s.ended(ctx, r, last); err != nil {
		return err
	}
	if r, err = s.store.Load(ctx, r.Ref()); err != nil {
		return fmt.Errorf("cannot load the task: %w", err)
	}
	return s.settle(ctx, r, replica.awaitFree)
}

// settleNow settles a run as it is stored.
func (s *Dispatcher) settleNow(ctx context.Context, r run.Run) error {
	r, err := s.store.Load(ctx, r.Ref())
	if err != nil {
		return fmt.Errorf("cannot load the task: %w", err)
	}
	return s.settle(ctx, r, nil)
}

func (s *Dispatcher) stopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ctx == nil || s.ctx.Err() != nil
}

// generate asks the replica and appends its answer.
func (s *Dispatcher) generate(ctx context.Context, r run.Run, replica *lease, w *answerWriter, used *run.Generation) error {
	work := r.Work.Inference
	var q inference.Request
	if err := json.Unmarshal(work.Request, &q); err != nil {
		return fault.Wrap(err, fault.Internal, "the stored request cannot be read")
	}
	left := r.AnswerBy().Sub(s.now())
	if left <= 0 {
		return fault.New(fault.DeadlineUnmet, "the deadline of %s was over before the engine began", work.Within)
	}
	can := replica.capabilities()
	model := work.EngineModel
	if model == "" && len(can.Models) > 0 {
		model = can.Models[0]
	}
	limits := port.GenerationLimits{First: min(left, firstPiece), Gap: min(left, pieceGap), Total: left}
	asking, stop := context.WithCancelCause(port.WithTraceParent(ctx, trace.OfEngine(r).String()))
	defer stop(nil)
	w.begin(asking, stop)
	var err error
	asked := replica.asks()
	switch port.Workload(work.Workload) {
	case port.WorkloadCompletion:
		var end port.GenerationEnd
		end, err = replica.engine.Generate(asking, port.Generation{
			Model: model, Prompt: q.Prompt, Messages: q.Messages, MaxTokens: q.Fitting(work.MaxTokens, can.ContextTokens), Stop: q.Stop, Seed: replica.seed(q),
			Temperature: q.Temperature, TopP: q.TopP, Limits: limits,
		}, w.piece)
		if errors.Is(err, errSpent) { // the engine does not keep to MaxTokens
			end.TokensOut, end.Finish, err = work.MaxTokens, port.FinishLength, nil
		}
		used.TokensIn, used.TokensOut, used.Finish = end.TokensIn, end.TokensOut, string(end.Finish)
	case port.WorkloadEmbedding:
		var found port.Embedded
		found, err = replica.engine.Embed(asking, port.Embedding{Model: model, Inputs: q.Input, Limits: limits})
		used.TokensIn = found.TokensIn
		for i, vector := range found.Vectors {
			w.result(inference.Result{Index: i, Embedding: vector})
		}
	case port.WorkloadRerank:
		var found port.Ranked
		found, err = replica.engine.Rerank(asking, port.Reranking{Model: model, Query: q.Query, Documents: q.Input, Limits: limits})
		used.TokensIn = found.TokensIn
		for i, score := range found.Scores {
			w.result(inference.Result{Index: i, Score: &score})
		}
	}
	asked()
	flushed := w.flush()
	if cause := context.Cause(asking); cause != nil && asking.Err() != nil {
		return cause
	}
	if err == nil {
		err = flushed
	}
	if err == nil {
		used.TokensIn = cmp.Or(used.TokensIn, work.PromptTokens)
		if port.Workload(work.Workload) != port.WorkloadCompletion {
			used.Finish = string(port.FinishStop)
		}
	}
	return err
}

// The limits of an engine's answer within the deadline of the task.
const (
	firstPiece = 2 * time.Minute
	pieceGap   = 30 * time.Second
)
