package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// StepInput is what the state machine gives a handler.
type StepInput struct {
	run.Ref
	Step run.Step `json:"step"`
	// Execution is the name of the execution that calls.
	Execution string `json:"execution"`
	// Generation and Token are those of a token state. A generation of 0 is that
	// of no wait: the token is completed at once.
	Generation int    `json:"generation,omitempty"`
	Token      string `json:"token,omitempty"`
	// Carried is the whole document of the execution, for the steps that look
	// at why they were entered.
	Carried Carried `json:"carried,omitzero"`
}

// Carried is the part of an execution's document that says what went wrong.
type Carried struct {
	// Generation is that of the token state which was left; 0 where there was none.
	Generation int        `json:"generation,omitempty"`
	Error      *StepError `json:"error,omitempty"`
}

// StepError is the error output of a state.
type StepError struct {
	Error string `json:"Error"`
	Cause string `json:"Cause"`
}

// TryAgain is the error of a handler that could not do its work now. The state
// machine retries it by this name, with backoff, for a day.
type TryAgain struct{ Cause error }

func (e TryAgain) Error() string { return "try again: " + e.Cause.Error() }

// Unwrap gives the cause.
func (e TryAgain) Unwrap() error { return e.Cause }

// again makes TryAgain of what passes by itself, and leaves the rest. Whatever
// wraps a TryAgain is one: the state machine knows errors by their outermost
// name.
func again(err error) error {
	if _, ok := errors.AsType[TryAgain](err); ok {
		return TryAgain{err}
	}
	f, ok := errors.AsType[*fault.Fault](err)
	passing := ok && (f.Code == fault.Unavailable || f.Code == fault.Throttled || f.Code == fault.StoreFull)
	if passing || errors.Is(err, port.ErrConflict) || errors.Is(err, context.DeadlineExceeded) {
		return TryAgain{err}
	}
	return err
}

// load reads the run of a step. stale says that the execution which calls was
// replaced by another; it has to end without touching anything.
func (s *Service) load(ctx context.Context, in StepInput) (r run.Run, stale bool, err error) {
	r, err = s.ports.Store.Load(ctx, in.Ref)
	if err != nil {
		return run.Run{}, false, again(fmt.Errorf("cannot load the run: %w", err))
	}
	if in.Execution != run.ExecutionName(r.Ref(), r.Execution.Start) {
		s.ports.Log.WarnContext(ctx, "an execution that was replaced still runs; it is ended",
			"run_id", r.ID, "execution", in.Execution)
		return r, true, nil
	}
	return r, false, nil
}

// ended is the route of an execution that has nothing more to do.
func ended(r run.Run) run.Route {
	return run.Route{Ref: r.Ref(), Next: run.StepCancelled, HeartbeatSeconds: 1, TimeoutSeconds: 2, Seconds: 1}
}

// enterWait stores the token of a token state. waiting is false where the
// record has left that state already: the token is then completed at once.
func (s *Service) enterWait(ctx context.Context, in StepInput) (r run.Run, waiting bool, err error) {
	r, stale, err := s.load(ctx, in)
	if err != nil {
		return r, false, err
	}
	if stale {
		return r, false, s.ports.Executions.Stop(ctx, in.Execution, "another execution has taken this run over")
	}
	r, err = s.applyTo(ctx, r, is(run.TokenStored{Step: in.Step, Generation: in.Generation, Token: in.Token}))
	if err != nil {
		return r, false, fmt.Errorf("cannot store the token: %w", err)
	}
	if r.Wait.Token == in.Token && r.Wait.Step == in.Step {
		return r, true, nil
	}
	return r, false, s.complete(ctx, r, in.Step, in.Token)
}
