package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// unreachableLimit is how long a machine that is not seen gone delays the next attempt.
const unreachableLimit = 10 * time.Minute

// releaseTime is the part of a call's deadline that remains for the release of the slot if the
// object store does not answer.
const releaseTime = 5 * time.Second

// FinalLogs stores the logs of ended attempts.
type FinalLogs interface {
	// StoreFinal stores the log of the run's attempt, and reports whether the attempt has one.
	// It is best effort and idempotent.
	StoreFinal(ctx context.Context, r run.Run) (stored bool)
}

// Termination handles the state Terminating.
type Termination struct {
	*Machines
	outputs *Outputs
	logs    FinalLogs
	hooks   Hooks
	rand    Rand
	config  Config
}

// NewTermination returns the handler of Terminating.
func NewTermination(machines *Machines, outputs *Outputs, logs FinalLogs, hooks Hooks, rand Rand, config Config) *Termination {
	return &Termination{machines, outputs, logs, hooks, rand, config}
}

// Terminate handles the state Terminating: it waits until the machine is gone, accepts the
// output, and decides between a retry and an end. It is idempotent. It returns TryAgain while
// the machine still exists. A run in another state is ended only if the execution carries an
// error; without one this is a repeated call of a run that has moved on.
func (s *Termination) Terminate(ctx context.Context, in StepInput) (run.Route, error) {
	ctx = countCalls(ctx, in.Ref)
	r, done, err := s.begin(ctx, in)
	if err != nil {
		return run.Route{}, err
	}
	if done {
		return ended(r), nil
	}
	if why := in.Carried.Error; why != nil && r.State != run.Terminating && r.State != run.Retrying && !r.State.Terminal() {
		message := "unexpected failure of the run's execution: " + why.Error
		if r, err = s.applyTo(ctx, r, in.visited(constantFact(run.Abandoned{Generation: in.Carried.Generation, Message: message}))); err != nil {
			return run.Route{}, again(err)
		}
	}
	if r.State == run.Terminating {
		if r, err = s.settle(ctx, r, in.Retries); err != nil {
			return run.Route{}, again(err)
		}
	}
	return run.RouteOf(r, s.now()), nil
}

// settle cleans up after an attempt and commits how the run continues. If the
// record changes meanwhile, such as by a cancel request, it starts over.
func (s *Termination) settle(ctx context.Context, r run.Run, retries int) (run.Run, error) {
	var err error
	var asked question
	for range port.CommitTries {
		var last end
		if !r.FansOut() {
			r, last, err = s.seeGone(ctx, r)
		}
		if err != nil || r.State != run.Terminating {
			return r, err
		}
		settled, err := s.collect(ctx, r)
		if err != nil {
			// The machine is gone: the slot is released while the object store is unavailable.
			if _, lost := s.applyTo(ctx, r, constantFact(run.SlotReleased{Attempt: r.Attempt.Number})); lost != nil {
				s.warn(ctx, r, "cannot release the slot before the output is settled", lost)
			}
			return r, err
		}
		settled.Exit, settled.Destroyed, settled.MayRun, settled.Rand = last.exit, last.destroyed, last.unseen, s.rand()
		d, err := run.Decide(r, run.Visited{Fact: settled, Retries: retries}, s.now())
		if err == nil && asksAfterRun(d.Run) {
			if settled.PostRunHook, err = s.ask(ctx, d.Run, &asked); err != nil {
				return r, fmt.Errorf("cannot ask the hook: %w", err)
			}
			d, err = run.Decide(r, run.Visited{Fact: settled, Retries: retries}, s.now())
		}
		if err != nil || !d.Changed {
			return r, err
		}
		after, err := s.commit(ctx, d)
		if !errors.Is(err, port.ErrConflict) {
			return after, err
		}
		if r, err = s.store.Load(ctx, r.Ref()); err != nil || r.State != run.Terminating {
			return r, err
		}
	}
	return r, fault.New(fault.Unavailable, "too many concurrent changes of the run; retry")
}

// asksAfterRun reports whether a run that ends has a hook to ask.
func asksAfterRun(r run.Run) bool {
	return (r.State == run.Completed || r.State == run.Failed) && r.Constraints != nil && r.Constraints.PostRunHook != nil
}

// question is the outcome of a run about which its hook was asked, with the hook's answer.
type question struct {
	state  run.State
	fault  fault.Code
	answer *spec.HookAnswer
}

// ask asks the hook after the run. It reuses the answer to the last question if the run ends in
// the same way. A hook may take longer than the time until the next change of the record.
func (s *Termination) ask(ctx context.Context, r run.Run, last *question) (*spec.HookAnswer, error) {
	now := question{state: r.State}
	if r.Fault != nil {
		now.fault = r.Fault.Code
	}
	if last.answer != nil && last.state == now.state && last.fault == now.fault {
		return last.answer, nil
	}
	answer, err := s.hooks.Ask(ctx, r, *r.Constraints.PostRunHook, spec.PostRunHook)
	if err != nil {
		return nil, err
	}
	now.answer = &answer
	*last = now
	return &answer, nil
}

// collect accepts the output of an attempt, stores its log and clears its uploads.
// If ctx has a deadline, it leaves releaseTime of it.
func (s *Termination) collect(ctx context.Context, r run.Run) (run.Settled, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-releaseTime))
		defer cancel()
	}
	if r.FansOut() {
		return s.collectChildren(ctx, r)
	}
	output, wrong, err := s.outputs.accept(ctx, r, s.config.DigestRead)
	if err != nil {
		return run.Settled{}, fmt.Errorf("cannot accept the output: %w", err)
	}
	logged := s.logs.StoreFinal(ctx, r)
	if err := s.outputs.clear(ctx, r, output); err != nil {
		return run.Settled{}, fmt.Errorf("cannot clear the attempt's uploads: %w", err)
	}
	return run.Settled{Output: output, Fault: wrong, Logged: logged}, nil
}

// end describes how the machine of an attempt ended.
type end struct {
	// exit is nil if it is unknown.
	exit *run.Exit
	// destroyed reports that Terminating has destroyed it, unseen that it was not seen gone.
	destroyed, unseen bool
}

// seeGone waits until the machine of an attempt is gone. It gives a worker that has reported
// time to exit, and then destroys the machine. It returns once the machine is seen gone, or
// after unreachableLimit. While a create call may be in flight, it returns TryAgain. For a run
// that falls back, it also does so while a machine may exist that the platform does not show.
// It returns the newest record, which may be in another state.
func (s *Termination) seeGone(ctx context.Context, r run.Run) (run.Run, end, error) {
	machine, err := s.machineOf(ctx, r)
	if err == nil && !machine.Known() {
		last, err := s.seeNone(ctx, r)
		return r, last, err
	}
	if err != nil {
		return r, end{}, err
	}
	if r.Attempt.Report != nil || r.WarmForReuse().ID != "" && r.Attempt.Exit != nil { // a kept machine stays after its program
		// The error occurs again below, where it is limited to ten minutes.
		if exit, gone, err := s.goneWithin(ctx, machine, s.config.ExitWait, r.Attempt.StartBy); gone && err == nil {
			return r, end{exit: exit}, nil
		}
		if r, err = s.applyTo(ctx, r, constantFact(run.DestroyBegun{Attempt: r.Attempt.Number})); err != nil || r.State != run.Terminating {
			return r, end{}, err
		}
	}
	last, err := s.destroy(ctx, r, machine)
	return r, last, err
}

// destroy destroys the machine of an ended attempt and waits until it is gone. It returns
// TryAgain if the machine still exists before unreachableLimit.
func (s *Termination) destroy(ctx context.Context, r run.Run, machine port.Machine) (end, error) {
	var exit *run.Exit
	var gone bool
	ours, err := s.endReusable(ctx, r.WarmForReuse(), ownerOf(r))
	if err == nil && ours {
		err = s.runner.Destroy(ctx, machine)
	}
	if err == nil {
		if exit, gone, err = s.goneWithin(ctx, machine, s.config.DestroyWait, r.Attempt.StartBy); gone {
			return end{exit: exit, destroyed: true}, nil
		}
	}
	if err == nil {
		err = errors.New("it still exists")
	}
	if s.unreachable(r) {
		s.warn(ctx, r, "the machine was not seen gone for ten minutes; the run continues", err)
		return end{destroyed: true, unseen: true}, nil
	}
	return end{destroyed: true}, TryAgain{fmt.Errorf("cannot see machine %s gone: %w", machine.ID, err)}
}

// seeNone is seeGone for an attempt whose machine no list shows. Before the start limit, a
// machine of an unanswered create call may still exist.
func (s *Termination) seeNone(ctx context.Context, r run.Run) (end, error) {
	unsure := r.FallsBack() && r.Attempt.MaybeCreated && r.Cancel == nil && s.now().Before(r.Attempt.StartBy)
	unknown := errors.New("an unanswered call may have created a machine")
	switch {
	case r.Creating(s.now()):
		return end{}, TryAgain{errors.New("a create call may be in flight")}
	case unsure && s.unreachable(r):
		s.warn(ctx, r, "no machine was seen for ten minutes; the run continues and does not fall back", unknown)
		return end{unseen: true}, nil
	case unsure:
		return end{}, TryAgain{unknown}
	}
	return end{}, nil
}

// unreachable reports whether the machine of an attempt has delayed the next attempt for
// unreachableLimit.
func (s *Termination) unreachable(r run.Run) bool {
	return s.now().Sub(r.EnteredAt) >= unreachableLimit
}
