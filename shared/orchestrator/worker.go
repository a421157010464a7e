package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// workerIDLimit is the longest name of a worker, in characters.
const workerIDLimit = 255

// Refusal is the fault of a worker's call with what the worker contract fixes
// for its answer.
type Refusal struct {
	Fault *fault.Fault
	// ExpectedAttempt and ReceivedAttempt are set for AttemptMismatch.
	ExpectedAttempt, ReceivedAttempt int
	// State is how the attempt ended, or is about to, for TaskAlreadyTerminal.
	State string
}

// Error is the fault's.
func (r *Refusal) Error() string { return r.Fault.Error() }

// Unwrap gives the fault.
func (r *Refusal) Unwrap() error { return r.Fault }

// Started takes a worker's word that it begins. It returns after the commit,
// with the time of it. Faults are the answers of the worker contract, as
// Refusals; InvalidRequest names the field. It needs Executions beside Store.
func (s *Service) Started(ctx context.Context, bearer Bearer, body contract.TaskStarted) (time.Time, error) {
	now := s.now()
	r, err := s.ofWorker(ctx, bearer, caller{body.Attempt, body.WorkerID})
	if err != nil {
		return now, err
	}
	contacted := run.WorkerContacted{Attempt: body.Attempt, WorkerID: body.WorkerID, Started: true, HandlesSigterm: body.HandlesSigterm}
	after, err := s.applyTo(ctx, r, is(contacted))
	if err != nil {
		s.markCancelDelivered(ctx, after, body.Attempt)
		return now, s.refused(ctx, after, body.Attempt, err, "commit the start")
	}
	if after.Version != r.Version {
		return now, nil // its heartbeat clock begins with the state's entry, or with the next heartbeat
	}
	// It was said before; it is a sign of life like any other.
	_, err = s.heartbeat(ctx, after, run.Heartbeat{Attempt: body.Attempt, WorkerID: body.WorkerID, At: now})
	return now, err
}

// Alive is the answer to a heartbeat.
type Alive struct {
	// At is when it was received.
	At time.Time
	// Cancel is the reason where a cancel is wished; nil where none is.
	Cancel *string
	// Renewed has what the worker goes on with, where its token is half over.
	Renewed contract.TokenRenewal
}

// Heartbeat takes a worker's sign of life: one conditional write beside the run.
// The worker's own clock counts for nothing. Faults as for Started. It needs
// Executions, Signer and Outputs beside Store.
func (s *Service) Heartbeat(ctx context.Context, bearer Bearer, body contract.TaskHeartbeat) (Alive, error) {
	alive := Alive{At: s.now()}
	heartbeat := run.Heartbeat{
		Attempt: body.Attempt, WorkerID: body.WorkerID, At: alive.At, Message: Cut(body.Message, messageLimit),
	}
	if body.ProgressPct != nil {
		heartbeat.Progress = new(min(max(*body.ProgressPct, 0), 100))
	}
	recorded, err := s.recordHeartbeat(ctx, bearer, heartbeat)
	if err != nil {
		return alive, err
	}
	if alive.Cancel = recorded.Cancel; alive.Cancel != nil {
		r, err := s.ports.Store.Load(ctx, bearer.ref())
		if err != nil {
			return alive, fmt.Errorf("cannot load the run: %w", err)
		}
		s.markCancelDelivered(ctx, r, body.Attempt)
	}
	alive.Renewed, err = s.renewal(ctx, bearer)
	if err != nil {
		// The old one is good for a while, and the next heartbeat tries again.
		s.ports.Log.WarnContext(ctx, "cannot renew a worker's token", "task_id", bearer.TaskID, "error", err.Error())
	}
	return alive, nil
}

// noteBeat writes the heartbeat to the open item. Where there is none for it,
// the record says why, or opens one.
func (s *Service) recordHeartbeat(ctx context.Context, bearer Bearer, heartbeat run.Heartbeat) (run.Heartbeat, error) {
	by := caller{heartbeat.Attempt, heartbeat.WorkerID}
	if bearer.proven != nil && bearer.proven.ofRun.Load() && by.fits(bearer) {
		recorded, err := s.writeHeartbeat(ctx, bearer.ref(), heartbeat)
		if !errors.Is(err, port.ErrNotFound) {
			return recorded, err
		}
	}
	r, err := s.ofWorker(ctx, bearer, by)
	if err != nil {
		return run.Heartbeat{}, err
	}
	return s.heartbeat(ctx, r, heartbeat)
}

// beat is noteBeat for a run that was read.
func (s *Service) heartbeat(ctx context.Context, r run.Run, heartbeat run.Heartbeat) (run.Heartbeat, error) {
	recorded, err := s.writeHeartbeat(ctx, r.Ref(), heartbeat)
	if !errors.Is(err, port.ErrNotFound) {
		return recorded, err
	}
	after, err := s.applyTo(ctx, r, func(now run.Run) run.Fact {
		return run.WorkerContacted{
			Attempt: heartbeat.Attempt, WorkerID: heartbeat.WorkerID, Progress: heartbeat.Progress, Message: heartbeat.Message,
			Missing: now.Attempt.WorkerID == heartbeat.WorkerID,
		}
	})
	if err != nil {
		return run.Heartbeat{}, s.refused(ctx, after, heartbeat.Attempt, err, "commit the heartbeat")
	}
	return s.writeHeartbeat(ctx, r.Ref(), heartbeat)
}

// beatItem writes the item, and starts the execution's heartbeat clock anew. A
// clock that cannot be started only brings the next judgement forward.
func (s *Service) writeHeartbeat(ctx context.Context, ref run.Ref, heartbeat run.Heartbeat) (run.Heartbeat, error) {
	recorded, err := s.ports.Store.Heartbeat(ctx, ref, heartbeat)
	if errors.Is(err, port.ErrNotFound) {
		return recorded, err
	}
	if err != nil {
		return recorded, fmt.Errorf("cannot note the heartbeat: %w", err)
	}
	if recorded.Token == "" {
		return recorded, nil
	}
	if err := s.ports.Executions.Heartbeat(ctx, recorded.Token); err != nil && !errors.Is(err, port.ErrTokenGone) {
		s.ports.Log.WarnContext(ctx, "cannot tell the execution of a heartbeat", "run_id", ref.ID, "error", err.Error())
	}
	return recorded, nil
}

// Completed takes a worker's last word. It returns how the attempt ended, after
// the commit. Faults as for Started. It needs Executions beside Store.
func (s *Service) Completed(ctx context.Context, bearer Bearer, body contract.TaskCompleted) (final run.Outcome, at time.Time, err error) {
	at = s.now()
	r, err := s.ofWorker(ctx, bearer, caller{body.Attempt, body.WorkerID})
	if err != nil {
		return "", at, err
	}
	report, err := completionOf(r, body)
	if err != nil {
		return "", at, err
	}
	after, err := s.applyTo(ctx, r, is(run.Reported{Attempt: body.Attempt, WorkerID: body.WorkerID, Report: report}))
	if err != nil {
		return "", at, s.refused(ctx, after, body.Attempt, err, "commit the completion")
	}
	return after.Attempt.Outcome, at, nil
}

// tellCancel notes that the answer which is about to be given tells of a cancel.
func (s *Service) markCancelDelivered(ctx context.Context, r run.Run, attempt int) {
	if r.Cancel == nil || !r.IsCurrent(attempt) {
		return
	}
	if _, err := s.applyTo(ctx, r, is(run.CancelDelivered{Attempt: attempt})); err != nil {
		s.warn(ctx, r, "cannot note that the worker was told of the cancel; its grace begins with SIGTERM", err)
	}
}

// caller is who a worker's body says it is.
type caller struct {
	attempt  int
	workerID string
}

func (c caller) check() error {
	switch {
	case c.attempt < 1:
		return fault.Invalid("attempt", "the attempt is its number, from 1")
	case c.workerID == "" || utf8.RuneCountInString(c.workerID) > workerIDLimit || !clean(c.workerID):
		return fault.Invalid("workerId", "malformed workerId, want 1 to %d characters without control characters", workerIDLimit)
	}
	return nil
}

// fits says whether the body can be of the token's own worker.
func (c caller) fits(bearer Bearer) bool { return c.check() == nil && c.attempt == bearer.Attempt }

// ofWorker finds the run of a worker's call, and holds token and body against
// it, in the order of the worker contract's cases.
func (s *Service) ofWorker(ctx context.Context, bearer Bearer, by caller) (run.Run, error) {
	if err := by.check(); err != nil {
		return run.Run{}, err
	}
	r, err := s.ofBearer(ctx, bearer)
	if err != nil {
		return r, err
	}
	switch {
	case by.attempt != r.Attempt.Number:
		f := fault.New(fault.AttemptMismatch, "this is attempt %d's call, and attempt %d is the current one", by.attempt, r.Attempt.Number)
		return r, s.refused(ctx, r, by.attempt, f, "")
	case bearer.Attempt != by.attempt:
		return r, fault.New(fault.Forbidden, "the token is for another attempt")
	}
	return r, nil
}

// ofBearer finds the run that the token is for. A token for what is not there
// is for something else.
func (s *Service) ofBearer(ctx context.Context, bearer Bearer) (run.Run, error) {
	r, err := s.ports.Store.Find(ctx, bearer.TenantID, bearer.TaskID)
	if errors.Is(err, port.ErrNotFound) {
		return r, fault.New(fault.Forbidden, "the token is not for a task that is known here, or that one has expired")
	}
	if err != nil {
		return r, fmt.Errorf("cannot find the task: %w", err)
	}
	if bearer.RunID != r.ID || bearer.WorkspaceID != r.Workspace {
		return r, fault.New(fault.Forbidden, "the token is for another run")
	}
	if bearer.proven != nil {
		bearer.proven.ofRun.Store(true)
	}
	return r, nil
}

// refused makes the answer to a call that the record refuses, and logs it. Other
// failures are told as what was being done.
func (s *Service) refused(ctx context.Context, r run.Run, received int, err error, doing string) error {
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		return fmt.Errorf("cannot %s: %w", doing, err)
	}
	refusal := &Refusal{Fault: f}
	switch f.Code {
	case fault.AttemptMismatch:
		refusal.ExpectedAttempt, refusal.ReceivedAttempt = r.Attempt.Number, received
	case fault.TaskAlreadyTerminal:
		refusal.State = string(r.Attempt.Outcome)
		if r.IsCurrent(r.Attempt.Number) {
			refusal.State = contract.OutcomeCancelled
		}
	case fault.WorkerMismatch, fault.TaskExpired:
	default:
		return err
	}
	s.warn(ctx, r, "a worker's call was refused", f)
	return refusal
}
