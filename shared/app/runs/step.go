package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sortie-dev/sortie/shared/app/about"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// StepInput is the input of a step of the state machine.
type StepInput struct {
	run.Ref
	Step run.Step `json:"step"`
	// Execution is the name of the calling execution.
	Execution string `json:"execution"`
	// Generation and Token belong to a token state. Generation 0 belongs to no
	// wait: its token is completed at once.
	Generation int    `json:"generation,omitempty"`
	Token      string `json:"token,omitempty"`
	// Retries is how often the state was retried before this call.
	Retries int `json:"retries,omitempty"`
	// Carried is the execution's document, for the steps that need the failure that led to
	// them.
	Carried Carried `json:"carried,omitzero"`
}

// Carried is the part of an execution's document that describes a failure.
type Carried struct {
	// Generation is that of the token state that was left, or 0.
	Generation int        `json:"generation,omitempty"`
	Error      *StepError `json:"error,omitempty"`
}

// StepError is the error output of a state.
type StepError struct {
	Error string `json:"Error"`
	Cause string `json:"Cause"`
}

// failed reports whether a call of a handler failed. A timeout is no failure, nor
// is a record that has moved on.
func (c Carried) failed() bool {
	if c.Error == nil {
		return false
	}
	switch c.Error.Error {
	case "States.Timeout", "States.HeartbeatTimeout", movedOn:
		return false
	}
	return true
}

// TryAgain is the error of a step that cannot do its work now. The state machine
// retries it by this name, with backoff, for a day.
type TryAgain struct{ Cause error }

func (e TryAgain) Error() string { return "try again: " + e.Cause.Error() }

// Unwrap returns the cause.
func (e TryAgain) Unwrap() error { return e.Cause }

// again turns temporary errors into TryAgain and returns others unchanged. An error
// that wraps a TryAgain is wrapped once more: the state machine matches the
// outermost name.
func again(err error) error {
	if _, ok := errors.AsType[TryAgain](err); ok {
		return TryAgain{err}
	}
	f, ok := errors.AsType[*fault.Fault](err)
	temporary := ok && (f.Code == fault.Unavailable || f.Code == fault.Throttled || f.Code == fault.StoreFull)
	if temporary || errors.Is(err, port.ErrConflict) || errors.Is(err, context.DeadlineExceeded) {
		return TryAgain{err}
	}
	return err
}

// visited counts the call in the execution's history.
func (in StepInput) visited(f fact) fact {
	return func(r run.Run) run.Fact { return run.Visited{Fact: f(r), Retries: in.Retries} }
}

// begin reads the run of a plain step. done reports that the calling execution has
// nothing more to do: it was replaced, or it hands the run over to a new one
// because its history is nearly full.
func (s *Lifecycle) begin(ctx context.Context, in StepInput) (r run.Run, done bool, err error) {
	r, stale, err := s.load(ctx, in)
	if err != nil || stale {
		return r, stale, err
	}
	after, err := s.applyTo(ctx, r, constantFact(run.HandedOver{
		Generation: in.Carried.Generation, Retries: in.Retries, MaxEvents: s.maxEvents,
	}))
	if err != nil {
		return r, false, again(fmt.Errorf("cannot hand over the run: %w", err))
	}
	if after.Execution.Start == r.Execution.Start {
		return after, false, nil
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "the run continues in a new execution, because its history is nearly full",
		append(about.Run(&after), slog.Int("start", after.Execution.Start))...)
	return after, true, nil
}

// load reads the run of a step. stale reports that the calling execution was
// replaced; it must end without a change.
func (s *Lifecycle) load(ctx context.Context, in StepInput) (r run.Run, stale bool, err error) {
	r, err = s.store.Load(ctx, in.Ref)
	if err != nil {
		return run.Run{}, false, again(fmt.Errorf("cannot load the run: %w", err))
	}
	if in.Execution != run.ExecutionName(r.Ref(), r.Execution.Start) {
		s.log.LogAttrs(ctx, slog.LevelWarn, "an execution that was replaced still runs and is ended",
			append(about.Run(&r), slog.String("execution", in.Execution))...)
		return r, true, nil
	}
	return r, false, nil
}

// ended returns the route of an execution that has nothing more to do.
func ended(r run.Run) run.Route {
	return run.Route{Ref: r.Ref(), Next: run.StepCancelled, HeartbeatSeconds: 1, TimeoutSeconds: 2, Seconds: 1}
}

// enterWait stores the token of a token state. waiting is false if the record has
// left that state already; the token is then completed at once.
func (s *Lifecycle) enterWait(ctx context.Context, in StepInput) (r run.Run, waiting bool, err error) {
	r, stale, err := s.load(ctx, in)
	if err != nil {
		return r, false, err
	}
	if stale {
		return r, false, s.executions.Stop(ctx, in.Execution, "another execution has taken over this run")
	}
	stored := run.TokenStored{
		Step: in.Step, Generation: in.Generation, Token: in.Token,
		Repeated: r.Wait.Token == in.Token, Swept: s.forwardingSuspended(ctx, in.Step),
	}
	if in.Step == run.StepContainerCreating {
		if stored.Placement, err = s.placement(ctx, r); err != nil {
			return r, false, again(err)
		}
	}
	r, err = s.applyTo(ctx, r, in.visited(constantFact(stored)))
	if err != nil {
		return r, false, fmt.Errorf("cannot store the token: %w", err)
	}
	if r.Wait.Token == in.Token && r.Wait.Step == in.Step {
		return r, true, nil
	}
	return r, false, s.effect(ctx, r, run.Effect{Kind: run.EffectComplete, Step: in.Step, Token: in.Token})
}

// placement returns the placement of the run's pool. For a deleted pool it returns the
// placement of the attempt.
func (s *forecasts) placement(ctx context.Context, r run.Run) (platform.Placement, error) {
	pool, err := s.pools.Pool(ctx, r.Tenant, r.Slot.Pool)
	if errors.Is(err, port.ErrNotFound) {
		return r.Attempt.Place(), nil
	}
	return pool.Placement, err
}

// wait is enterWait for states whose handler only stores the token.
func (s *Lifecycle) wait(ctx context.Context, in StepInput) error {
	_, _, err := s.enterWait(ctx, in)
	return err
}
