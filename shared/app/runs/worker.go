package runs

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/reception"
	"github.com/sortie-dev/sortie/shared/app/token"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Workers serves the calls of workers. Faults that the worker contract fixes are
// Refusals; InvalidRequest names the field.
type Workers struct {
	*Lifecycle
	grants grants.Grants
	gap    time.Duration
}

// NewWorkers returns Workers. Upload URLs of renewed grants are signed by outputs.
func NewWorkers(life *Lifecycle, tokens *grants.Tokens, outputs port.Outputs, config Config) *Workers {
	return &Workers{life, grants.NewGrants(tokens, outputs, config.TokenTTL), reception.Gap(config.SweepInterval)}
}

// Refusal is the fault of a worker's call with the fields that the worker contract
// fixes for its answer.
type Refusal struct {
	Fault *fault.Fault
	// ExpectedAttempt and ReceivedAttempt are set for AttemptMismatch.
	ExpectedAttempt, ReceivedAttempt int
	// State is set for TaskAlreadyTerminal: the outcome of the attempt, or
	// CANCELLED if a cancel is requested.
	State run.Outcome
}

// Error returns the fault's text.
func (r *Refusal) Error() string { return r.Fault.Error() }

// Unwrap returns the fault.
func (r *Refusal) Unwrap() error { return r.Fault }

// Caller is the worker that a call names in its body.
type Caller struct {
	Attempt  int
	WorkerID string
}

func (c Caller) check() error {
	switch {
	case c.Attempt < 1:
		return fault.Invalid("attempt", "attempt %d is out of range, want 1 or more", c.Attempt)
	case c.WorkerID == "" || utf8.RuneCountInString(c.WorkerID) > limit.WorkerID || !limit.Printable(c.WorkerID):
		return fault.Invalid("workerId", "malformed workerId, want 1 to %d characters without control characters", limit.WorkerID)
	}
	return nil
}

// Abilities are the abilities that a worker announces when it starts.
type Abilities struct {
	// HandlesSigterm reports that it ends gracefully on SIGTERM, SendsOutput that it sends its
	// output while it runs.
	HandlesSigterm, SendsOutput bool
}

// Bearer is the holder of a valid token.
type Bearer = token.Bearer

// Authenticate checks the token of a call of the worker contract. Faults as for
// token.Verifier.
func (s *Workers) Authenticate(ctx context.Context, text, taskID string) (Bearer, error) {
	return s.grants.Verify(ctx, text, token.AudienceWorker, taskID)
}

// AuthenticateCallback checks the token of a CALLBACK_URL. Faults as for
// token.Verifier.
func (s *Workers) AuthenticateCallback(ctx context.Context, text, taskID string) (Bearer, error) {
	return s.grants.Verify(ctx, text, token.AudienceCallback, taskID)
}

// Started records that a worker starts. It returns after the commit, with the time
// of the call.
func (s *Workers) Started(ctx context.Context, bearer token.Bearer, by Caller, can Abilities) (time.Time, error) {
	now := s.now()
	r, err := s.runOf(ctx, bearer, by)
	if err != nil {
		return now, err
	}
	contacted := run.WorkerContacted{
		Attempt: by.Attempt, WorkerID: by.WorkerID, Started: true, HandlesSigterm: can.HandlesSigterm, SendsOutput: can.SendsOutput,
	}
	after, err := s.applyTo(ctx, r, constantFact(contacted))
	if err != nil {
		s.markCancelDelivered(ctx, after, by.Attempt)
		return now, s.refused(ctx, after, by.Attempt, err, "commit the start")
	}
	if after.Version != r.Version {
		return now, nil // its heartbeat clock starts with the state's entry, or with the next heartbeat
	}
	// The call is a repetition. It counts as a heartbeat.
	_, err = s.heartbeat(ctx, bearer, after, run.Heartbeat{Attempt: by.Attempt, WorkerID: by.WorkerID, At: now})
	return now, err
}

// Completed records a worker's result. report is evaluated after the caller was
// identified. Completed returns the outcome of the attempt after the commit, and
// the time of the call.
func (s *Workers) Completed(
	ctx context.Context, bearer token.Bearer, by Caller, report func() (run.Report, error),
) (final run.Outcome, at time.Time, err error) {
	at = s.now()
	r, err := s.runOf(ctx, bearer, by)
	if err != nil {
		return "", at, err
	}
	final, err = s.report(ctx, r, by, report, "commit the completion")
	return final, at, err
}

// Callback is Completed for a worker of the export contract, which has no worker
// id; its attempt is the token's.
func (s *Workers) Callback(ctx context.Context, bearer token.Bearer, report func(run.Run) (run.Report, error)) error {
	r, err := s.bearerRun(ctx, bearer)
	if err != nil {
		return err
	}
	reported := func() (run.Report, error) { return report(r) }
	_, err = s.report(ctx, r, Caller{Attempt: bearer.Attempt}, reported, "commit the callback")
	return err
}

func (s *Workers) report(
	ctx context.Context, r run.Run, by Caller, report func() (run.Report, error), doing string,
) (run.Outcome, error) {
	reported, err := report()
	if err != nil {
		return "", err
	}
	after, err := s.applyTo(ctx, r, constantFact(run.Reported{Attempt: by.Attempt, WorkerID: by.WorkerID, Report: reported}))
	if err != nil {
		return "", s.refused(ctx, after, by.Attempt, err, doing)
	}
	return after.Attempt.Outcome, nil
}

// markCancelDelivered records that the answer to the current call carries the
// cancel request.
func (s *Workers) markCancelDelivered(ctx context.Context, r run.Run, attempt int) {
	if r.EndRequest() == nil || !r.IsCurrent(attempt) {
		return
	}
	if _, err := s.applyTo(ctx, r, constantFact(run.CancelDelivered{Attempt: attempt})); err != nil {
		s.warn(ctx, r, "cannot record the delivery of the cancel request; its grace starts with SIGTERM", err)
	}
}

// runOf reads the run of a call and compares token and body with it, in the order
// of the worker contract's cases.
func (s *Workers) runOf(ctx context.Context, bearer token.Bearer, by Caller) (run.Run, error) {
	if err := by.check(); err != nil {
		return run.Run{}, err
	}
	r, err := s.bearerRun(ctx, bearer)
	if err != nil {
		return r, err
	}
	switch {
	case by.Attempt != r.Attempt.Number:
		f := fault.New(fault.AttemptMismatch, "the call is from attempt %d, want the current attempt %d", by.Attempt, r.Attempt.Number)
		return r, s.refused(ctx, r, by.Attempt, f, "")
	case bearer.Attempt != by.Attempt:
		return r, fault.New(fault.Forbidden, "the token is for another attempt")
	}
	return r, nil
}

// bearerRun reads the run of a token. Fault: Forbidden if the run does not exist, or is another
// one than that of the token.
func (s *Workers) bearerRun(ctx context.Context, bearer token.Bearer) (run.Run, error) {
	r, err := s.store.Find(ctx, bearer.TenantID, bearer.TaskID)
	if errors.Is(err, port.ErrNotFound) {
		return r, fault.New(fault.Forbidden, "the token's task is unknown or has expired")
	}
	if err != nil {
		return r, fmt.Errorf("cannot find the task: %w", err)
	}
	if bearer.RunID != r.ID || bearer.WorkspaceID != r.Workspace {
		return r, fault.New(fault.Forbidden, "the token is for another run")
	}
	bearer.MarkMatched(token.About{JobID: r.JobID, CorrelationID: r.CorrelationID, ScheduledAt: r.ScheduledAt})
	return r, nil
}

// refused returns the Refusal of a call that the record rejects, and logs it. Other faults are
// returned unchanged. Errors that are not faults are wrapped with doing, the action that
// failed.
func (s *Workers) refused(ctx context.Context, r run.Run, received int, err error, doing string) error {
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		return fmt.Errorf("cannot %s: %w", doing, err)
	}
	refusal := &Refusal{Fault: f}
	switch f.Code {
	case fault.AttemptMismatch:
		refusal.ExpectedAttempt, refusal.ReceivedAttempt = r.Attempt.Number, received
	case fault.TaskAlreadyTerminal:
		refusal.State = r.Attempt.Outcome
		if r.IsCurrent(r.Attempt.Number) {
			refusal.State = run.OutcomeCancelled
		}
	case fault.WorkerMismatch, fault.TaskExpired, fault.SequenceConflict:
	default:
		return err
	}
	s.warn(ctx, r, "a worker's call was refused", f)
	return refusal
}

func refOf(c token.Claims) run.Ref { return run.Ref{Tenant: c.TenantID, ID: c.RunID} }
