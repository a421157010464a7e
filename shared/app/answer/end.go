package answer

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// EndRecord returns the record that ends a successful stream, with the usage of the engine.
func EndRecord(g *run.Generation) *inference.End {
	return &inference.End{
		TokensOut: g.TokensOut, DecodeMS: g.DecodeMS, TokensIn: g.TokensIn, Finish: g.Finish, CachedTokens: g.CachedTokens, ReasoningTokens: g.ReasoningTokens,
	}
}

// StreamEnd converts the last record of a stream to the end of its run and the usage of the
// engine.
func StreamEnd(last inference.Record) (run.StreamEnd, run.Generation) {
	if e := last.End; e != nil {
		return run.StreamEnd{Outcome: run.OutcomeSucceeded}, run.Generation{
			TokensIn: e.TokensIn, CachedTokens: e.CachedTokens, TokensOut: e.TokensOut, ReasoningTokens: e.ReasoningTokens, DecodeMS: e.DecodeMS, Finish: e.Finish,
		}
	}
	e := last.Error
	used := run.Generation{TokensOut: e.TokensOut, DecodeMS: e.DecodeMS}
	if e.Code == fault.Cancelled {
		return run.StreamEnd{Outcome: run.OutcomeCancelled, Cancel: run.CancelRequested{By: e.By, Reason: e.Reason}}, used
	}
	why := fault.New(e.Code, "%s", e.Message)
	why.Field = e.Field
	return run.StreamEnd{Outcome: run.OutcomeFailed, Fault: why}, used
}

// EndOf returns the error record for the end of the stream of a run that has ended or has a
// cancel request.
func EndOf(r run.Run) inference.Record {
	failure := inference.Failure{Code: fault.Internal, Message: "the task ended as " + string(r.State), Engine: r.Work.Inference.Engine}
	if g := r.Generation; g != nil {
		failure.TokensOut, failure.DecodeMS = g.TokensOut, g.DecodeMS
	}
	switch {
	case r.Cancel != nil && (!r.State.Terminal() || r.State == run.Cancelled):
		failure.Code, failure.Message, failure.By, failure.Reason = fault.Cancelled, "cancelled on request", r.Cancel.By, r.Cancel.Reason
	case r.Fault != nil:
		failure.Code, failure.Message, failure.Field = FailureCode(r.Fault.Code), r.Fault.Message, r.Fault.Field
	}
	return inference.Record{Attempt: r.Attempt.Number, Error: &failure}
}

// FailureCode returns the code of a failure in the contract's error event.
func FailureCode(c fault.Code) fault.Code {
	switch c {
	case fault.QueueTimeout, fault.RunTimeout:
		return fault.DeadlineUnmet
	case fault.HeartbeatTimeout, fault.WorkerLost:
		return fault.WorkerReset
	case fault.StartTimeout, fault.ReplicaExhausted:
		return fault.PoolUnavailable
	case fault.PoolUnavailable, fault.DecodeTimeout, fault.WorkerReset, fault.Cancelled, fault.InvalidParams, fault.ModelUnknown, fault.DeadlineUnmet:
		return c
	}
	return fault.Internal
}

// Deleted returns the fault of an answer that was deleted.
func Deleted() error {
	return fault.New(fault.CursorExpired, "the answer is not stored: it was deleted, or its request has store: false")
}

// Remove deletes the stream of a run that has ended.
func (s *Streams) Remove(ctx context.Context, r run.Run) error {
	if err := s.feed.Remove(ctx, inference.StreamOf(r.Tenant, r.TaskID)); err != nil {
		return fmt.Errorf("cannot delete the stream of the task: %w", err)
	}
	return nil
}

// Loader reads runs; see port.Store.
type Loader interface {
	Load(ctx context.Context, ref run.Ref) (run.Run, error)
}

// EnsureEnd ends the stream of a run that has failed, was cancelled or has a cancel request,
// unless the stream has ended: the process that had to do it may be gone. Faults: NotFound if
// the run has expired, CursorExpired if its answer was deleted.
func (s *Streams) EnsureEnd(ctx context.Context, runs Loader, ref run.Ref) error {
	r, err := runs.Load(ctx, ref)
	if err != nil {
		if errors.Is(err, port.ErrNotFound) {
			return fault.New(fault.NotFound, "the task has expired")
		}
		return fmt.Errorf("cannot read the task: %w", err)
	}
	if r.AnswerDeleted {
		return Deleted()
	}
	if r.State == run.Completed || !r.State.Terminal() && (r.Cancel == nil || r.State == run.Terminating) {
		return nil
	}
	if _, err = s.Conclude(ctx, r, EndOf(r)); err != nil || r.AnswerDue().IsZero() {
		return err
	}
	// The stream may have been deleted before its end was appended.
	if r, err = runs.Load(ctx, ref); err == nil && r.AnswerDeleted {
		return s.Remove(ctx, r)
	}
	return nil
}
