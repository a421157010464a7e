package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Admit handles the state Pending: it wakes a run whose time has come, and
// takes a slot of its pool or a place in its line. It needs Executions beside
// Store. It may be repeated: a run that is further on is sent to Reconciling.
func (s *Service) Admit(ctx context.Context, in StepInput) (run.Route, error) {
	r, stale, err := s.load(ctx, in)
	if err != nil {
		return run.Route{}, err
	}
	if stale {
		return ended(r), nil
	}
	if r.State == run.PreRun || r.State == run.Retrying {
		if r, err = s.applyTo(ctx, r, is(run.Due{})); err != nil {
			return run.Route{}, again(fmt.Errorf("cannot wake the run: %w", err))
		}
	}
	if r.State != run.Pending {
		return s.furtherOn(r), nil
	}
	before := r.Attempt.Number
	r, err = s.takeSlot(ctx, r)
	if err != nil {
		return run.Route{}, again(fmt.Errorf("cannot admit the run: %w", err))
	}
	if r.State != run.Pending && r.Attempt.Number == before {
		return s.furtherOn(r), nil
	}
	return run.RouteOf(r, s.now()), nil
}

// takeSlot takes a free slot, or lines up. Both fail to find a run that was
// changed meanwhile as it was; what they then return is how it is now.
func (s *Service) takeSlot(ctx context.Context, r run.Run) (run.Run, error) {
	admitted, err := s.applyTo(ctx, r, is(run.Admitted{Pool: s.config.Pool, Limit: s.config.MaxMachines}))
	if !errors.Is(err, port.ErrNoSlot) {
		return admitted, err
	}
	lined, err := s.applyTo(ctx, r, is(run.Enqueued{Pool: s.config.Pool, Limit: s.config.MaxMachines}))
	if err != nil {
		return lined, err
	}
	// The slot may have been given back while the run was getting in line.
	s.fill(ctx, r.Tenant, s.config.Pool)
	return lined, nil
}

// furtherOn is the route of a run that is past admission: to where it ends, or
// has to wait, or to Reconciling, which finds out. It carries no generation, so that
// no state on the way takes the wait of another execution for its own.
func (s *Service) furtherOn(r run.Run) run.Route {
	route := run.RouteOf(r, s.now())
	route.Generation = 0
	if !r.State.Terminal() && r.State != run.PreRun && r.State != run.Retrying {
		route.Next = run.StepReconciling
	}
	return route
}

// AwaitSlot handles the state Queued: it stores the token, which the commit
// that grants the slot completes.
func (s *Service) AwaitSlot(ctx context.Context, in StepInput) error {
	_, _, err := s.enterWait(ctx, in)
	return err
}

// Constrain handles the state ConditionRunning: it checks the constraints of
// the run's job in one decision. A run without a job has none.
func (s *Service) Constrain(ctx context.Context, in StepInput) (run.Route, error) {
	return s.plainStep(ctx, in, is(run.Checked{}))
}

// Act handles the state ActionRunning: it does what the run's job wants done
// about a violation. A run without a job goes on.
func (s *Service) Act(ctx context.Context, in StepInput) (run.Route, error) {
	return s.plainStep(ctx, in, is(run.Acted{}))
}

// AwaitAction handles the state ActionWaiting: it stores the token, which the
// commit that ends what the action waits for completes.
func (s *Service) AwaitAction(ctx context.Context, in StepInput) error {
	_, _, err := s.enterWait(ctx, in)
	return err
}

func (s *Service) plainStep(ctx context.Context, in StepInput, f fact) (run.Route, error) {
	r, stale, err := s.load(ctx, in)
	if err != nil {
		return run.Route{}, err
	}
	if stale {
		return ended(r), nil
	}
	if r, err = s.applyTo(ctx, r, f); err != nil {
		return run.Route{}, again(err)
	}
	return run.RouteOf(r, s.now()), nil
}
