package inferences

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/app/answer"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// This file has the life of a task in order of time: Create accepts it, Advance advances it, serve
// streams the answer of an engine, conclude ends the attempt, and settle ends the task. A task that
// can begin at once takes a shorter way: TryTake acquires its replica before it is stored, and
// preparedTask.Start calls serveContacted.

// Create accepts an inference task. It returns after the task is stored, and normally after it
// has a slot or is queued. Faults: InvalidRequest, InvalidParams and DeadlineUnmet with the
// field, ModelUnknown, UntrustedArtifact, PoolUnready, PoolUnavailable, AdmissionReject,
// SessionClosed, QueueFull, IdempotencyMismatch. A prompt that is too long is InvalidParams
// with the field port.FieldPrompt, also if only the engine detects it.
func (s *Inference) Create(ctx context.Context, in NewTask) (Accepted, error) {
	if err := change.CheckKey(in.IdempotencyKey); err != nil {
		return Accepted{}, err
	}
	if err := s.checkTask(in); err != nil {
		return Accepted{}, err
	}
	if in.Request.Images() > 0 { // an image can be an artifact
		if err := in.Identity.Need(access.RunsRead, "messages"); err != nil {
			return Accepted{}, err
		}
	}
	var err error
	if in.stored, err = in.Request.Stored(); err != nil {
		return Accepted{}, err
	}
	created, existing, err := s.createTask(ctx, in)
	if err != nil {
		return Accepted{}, err
	}
	if !existing && created.State == run.Pending {
		// If this fails, a sweep admits the run: it is accepted.
		if after, err := s.runs.TakeSlot(ctx, created); err != nil {
			s.warn(ctx, created, "cannot admit an inference task; a sweep does", err)
		} else {
			created = after
		}
	}
	accepted := Accepted{
		Run: created, Existing: existing,
		QueuePosition: created.Expectation.Ahead, PredictedStart: time.Duration(created.Expectation.StartMS) * time.Millisecond,
	}
	if in.waits {
		return accepted, nil
	}
	if left, err := s.Remaining(ctx, created); err != nil {
		s.warn(ctx, created, "cannot read the budget of an accepted inference task", err)
	} else {
		accepted.Remaining = left
	}
	return accepted, nil
}

// Advance advances a run of kind inference, in every state, until it has to wait or has ended.
// It may be called at any time, by any number of processes; a sweep calls it for runs that are
// overdue.
func (s *Dispatcher) Advance(ctx context.Context, ref run.Ref) error {
	for range advanceSteps {
		next, again, err := s.step(ctx, ref)
		if next != nil {
			again, err = s.serve(ctx, next)
		}
		if err != nil || !again {
			return err
		}
	}
	return fault.New(fault.Internal, "the task has not ended after %d steps", advanceSteps)
}

// advanceSteps limits the steps of one call of Advance. A run needs fewer: an attempt has at
// most four states, and a task engineAttempts attempts of each kind in each of its pools.
const advanceSteps = 64 * (1 + platform.MaxFallbacks)

// step advances a run by one step, or returns the attempt to serve. again reports that the next
// step can follow at once.
func (s *Dispatcher) step(ctx context.Context, ref run.Ref) (next *serving, again bool, err error) {
	r, err := s.store.Load(ctx, ref)
	switch {
	case errors.Is(err, port.ErrNotFound):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("cannot load the task: %w", err)
	case r.State == run.Retrying, r.State == run.PreRun:
		after, err := s.runs.Apply(ctx, r, run.Due{})
		return nil, err == nil && after.State == run.Pending, err
	case r.Queued() && s.now().Before(r.QueueBy()):
		return nil, false, s.postponeCheck(ctx, r)
	case r.Queued():
		_, err = s.runs.Apply(ctx, r, run.Evaluated{Generation: r.Wait.Generation})
		return nil, err == nil, err
	case r.State == run.Pending:
		after, err := s.runs.TakeSlot(ctx, r)
		return nil, err == nil && !after.Queued() && !s.serves(after), err
	case r.State == run.ContainerCreating:
		return newServing(r), false, nil
	case r.State == run.Running:
		again, err = s.advanceRunning(ctx, r)
		return nil, again, err
	case r.State == run.Terminating && !s.serves(r):
		return nil, true, s.settle(ctx, r, nil)
	case r.State.Terminal():
		return nil, false, s.ended(ctx, r)
	}
	return nil, false, nil
}

// ended ends the stream of a run that has ended. It deletes the prompt, the stream and the transcript
// once they are due.
func (s *Dispatcher) ended(ctx context.Context, r run.Run) error {
	due := r.AnswerDue()
	if due.IsZero() || s.now().Before(due) {
		if r.AnswerDeleted {
			return s.answers.Remove(ctx, r) // an attempt that was served until now may have written to it
		}
		return s.answers.EnsureEnd(ctx, s.store, r.Ref())
	}
	if err := s.answers.Remove(ctx, r); err != nil {
		return err
	}
	if g := r.Generation; g != nil && g.Trace != "" && mayBeDeleted(r) {
		if err := s.artifacts.Remove(ctx, r.Tenant, g.Trace); err != nil {
			return err
		}
	}
	if r.Input() != nil {
		if err := s.prompts.Delete(ctx, r.Tenant, r.TaskID); err != nil {
			return err
		}
	}
	if _, err := s.runs.Apply(ctx, r, run.AnswerDeleted{}); err != nil {
		return err
	}
	return s.answers.Remove(ctx, r) // another reader may have ended the stream since then; see EnsureEnd
}

// serve serves an attempt that has a slot: it acquires a replica, streams its answer and ends
// the attempt. again reports that the run needs a further step.
func (s *Dispatcher) serve(ctx context.Context, t *serving) (again bool, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	t.stop = stop
	if !s.register(t, s.now()) {
		s.currentPool().callNextFor(ctx, t)
		return false, nil
	}
	defer s.unregister(t)
	return ignoreInterrupt(ctx, func() (again bool, err error) {
		serves, again, err := s.acquireAndCommit(ctx, t)
		if t.replica != nil {
			defer t.replica.Release()
		}
		if !serves {
			return again, err
		}
		return s.serveContacted(ctx, t)
	})
}

// serveContacted serves an attempt after the commit that makes this dispatcher its worker.
func (s *Dispatcher) serveContacted(ctx context.Context, t *serving) (again bool, err error) {
	endBeat := s.beat(ctx, t)
	defer endBeat()
	failure, err := s.stream(ctx, t)
	if err != nil {
		return true, err
	}
	// conclude is short and must happen, also if the task was cancelled.
	return true, s.conclude(context.WithoutCancel(ctx), t, failure)
}

// conclude ends an attempt and, if nothing may follow, the run.
func (s *Dispatcher) conclude(ctx context.Context, t *serving, failure error) error {
	if s.stopping() {
		return nil // the next dispatcher continues the task as after a crash
	}
	t.run.Generation = &t.used
	r, w, used := t.run, t.answer, &t.used
	if failure == nil {
		t.replica.Release() // a client that reads the end may continue at once, at the same replica
		if _, err := w.Close(ctx, inference.Record{Attempt: r.Attempt.Number, End: answer.EndRecord(used)}); err != nil {
			return err
		}
		return s.settle(ctx, r, nil)
	}
	if errors.Is(failure, errAttemptEnded) {
		return s.settleNow(ctx, r, t.replica.AwaitFree)
	}
	if errors.Is(failure, answer.ErrStreamEnded) || errors.Is(failure, errCancelled) || errors.Is(failure, context.Canceled) {
		return s.settleEnded(ctx, r, t.replica)
	}
	why, isFault := errors.AsType[*fault.Fault](failure)
	if !isFault {
		return failure // the store does not answer; a sweep continues
	}
	field := why.Field
	why = fault.New(why.Code, "%s", why.Message)
	why.Field = field
	if w.HasContent() {
		record := inference.Record{Attempt: r.Attempt.Number, Error: &inference.Failure{
			Code: answer.FailureCode(why.Code), Message: why.Message, Field: why.Field, Engine: r.Work.Inference.Engine, TokensOut: used.TokensOut, DecodeMS: used.DecodeMS,
		}}
		if _, err := w.Close(ctx, record); err != nil {
			return err
		}
		return s.settleEnded(ctx, r, t.replica)
	}
	after, err := s.runs.Apply(ctx, r, run.GenerationEnded{Attempt: r.Attempt.Number, Fault: why, Generation: used})
	if err != nil {
		return err
	}
	return s.settle(ctx, after, t.replica.AwaitFree)
}

// settle ends a run whose attempt has ended, and its stream, or lets another attempt follow.
// free, if it is not nil, waits until the engine has freed its slot for the attempt.
func (s *endings) settle(ctx context.Context, r run.Run, free func(context.Context)) error {
	head, state, err := s.answers.Read(ctx, r)
	if err != nil {
		return err
	}
	settled, err := s.settlement(ctx, r)
	if err != nil {
		return err
	}
	var last inference.Record
	switch {
	case state.Ended:
		last, err = s.answers.Last(ctx, r, head)
	case r.Cancel != nil:
		last, err = s.answers.Conclude(ctx, r, answer.EndOf(r))
	case state.HasContent(), s.isLastAttempt(r, settled):
		last, err = s.answers.Conclude(ctx, r, answer.EndOf(r))
	}
	if err != nil {
		return err
	}
	facts := run.Sequence{}
	if settled.Final = last.Ends(); settled.Final {
		end, used := answer.StreamEnd(last)
		used = used.Merged(r.Generation)
		facts = append(facts, run.GenerationEnded{Attempt: r.Attempt.Number, Stream: &end, Generation: &used})
	}
	if last.End != nil || state.HasContent() && last.Error != nil && last.Error.Code == fault.DeadlineUnmet {
		if settled.Trace, err = s.transcript(ctx, r); err != nil {
			return err
		}
	}
	if free != nil {
		free(ctx)
	}
	_, err = s.runs.Apply(ctx, r, append(facts, settled))
	return err
}
