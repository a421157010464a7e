package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/app/reception"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Supervision handles the states Running, Cancelling and Reconciling.
type Supervision struct {
	*Machines
	reception *reception.Prober
}

// NewSupervision returns the handlers of Running, Cancelling and Reconciling.
func NewSupervision(machines *Machines, prober *reception.Prober) *Supervision {
	return &Supervision{machines, prober}
}

// Supervise handles the state Running: it stores the token, which the commit that
// ends the attempt completes.
func (s *Supervision) Supervise(ctx context.Context, in StepInput) error { return s.wait(ctx, in) }

// StopWorker handles the state Cancelling: it stores the token, and sends SIGTERM
// if that is due.
func (s *Supervision) StopWorker(ctx context.Context, in StepInput) error {
	ctx = countCalls(ctx, in.Ref)
	r, waiting, err := s.enterWait(ctx, in)
	if err != nil || !waiting || !r.Attempt.Machine.Known() || r.Attempt.SigtermAt.IsZero() {
		return err
	}
	grace := max(r.Attempt.GraceUntil.Sub(s.now()), time.Second)
	if err := s.runner.Stop(ctx, r.Attempt.Machine, grace); err != nil {
		return fmt.Errorf("cannot stop the machine: %w", err)
	}
	return nil
}

// Reconcile handles the state Reconciling. It reads the record and, if that can prove
// something, inspects the machine. It returns the step for the record's state.
func (s *Supervision) Reconcile(ctx context.Context, in StepInput) (run.Route, error) {
	ctx = countCalls(ctx, in.Ref)
	r, done, err := s.begin(ctx, in)
	if err != nil {
		return run.Route{}, err
	}
	if done {
		return ended(r), nil
	}
	f := run.Evaluated{Generation: in.Carried.Generation, Failed: in.Carried.failed()}
	if f.Failed {
		s.warn(ctx, r, "a step failed", errors.New(in.Carried.Error.Error+": "+in.Carried.Error.Cause))
	}
	starting := r.State == run.ContainerCreating
	if starting && r.Queued() {
		f.Fallbacks = s.fallbacks(ctx, r)
	}
	if (starting || r.State == run.Running && r.EndRequest() != nil) && r.Attempt.Machine.Known() {
		s.inspectInto(ctx, r, &f)
	}
	evaluated := func(now run.Run) run.Fact {
		// Each try reads the contact again: the previous one may have lost to a heartbeat.
		if !f.Failed {
			f.Contact = s.reception.Contact(ctx, now, func() run.Reception { return s.reception.Evaluate(ctx, now) })
		}
		return f
	}
	if r, err = s.applyTo(ctx, r, in.visited(evaluated)); err != nil {
		return run.Route{}, again(fmt.Errorf("cannot reconcile the run: %w", err))
	}
	route := run.RouteOf(r, s.now())
	if pause := r.FailurePause(); f.Failed && pause > 0 && retriesAgain(route.Next) {
		route.Next, route.Seconds = run.StepBackingOff, int(pause/time.Second)
	}
	return route, nil
}

// retriesAgain reports whether a step waits for a token, so that its call may fail again and
// again.
func retriesAgain(step run.Step) bool {
	return step == run.StepQueued || step == run.StepRunning || step == run.StepCancelling
}
