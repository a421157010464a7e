package runs

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Admission handles the states Pending and Queued.
type Admission struct{ *Lifecycle }

// NewAdmission returns the handlers of Pending and Queued.
func NewAdmission(life *Lifecycle) *Admission { return &Admission{life} }

// Admit handles the state Pending: it ends the wait of a run that is due. It acquires a slot of
// the run's pool, or enqueues the run. It may be repeated: a run that was admitted before goes
// to Reconciling.
func (s *Admission) Admit(ctx context.Context, in StepInput) (run.Route, error) {
	r, done, err := s.begin(ctx, in)
	if err != nil {
		return run.Route{}, err
	}
	if done {
		return ended(r), nil
	}
	if r.State == run.PreRun || r.State == run.Retrying {
		newest, err := s.newest(ctx, r)
		if err != nil {
			return run.Route{}, again(err)
		}
		if r, err = s.applyTo(ctx, r, in.visited(constantFact(run.Due{Newest: newest}))); err != nil {
			return run.Route{}, again(fmt.Errorf("cannot wake the run: %w", err))
		}
	}
	if !admits(r) {
		return s.admittedRoute(r), nil
	}
	before := r.Attempt.Number
	r, err = s.takeSlot(ctx, r, in)
	if err != nil {
		return run.Route{}, again(fmt.Errorf("cannot admit the run: %w", err))
	}
	if !admits(r) && r.Attempt.Number == before && r.State != run.ConditionPending {
		return s.admittedRoute(r), nil
	}
	return run.RouteOf(r, s.now()), nil
}

// newest returns r as the newest definition of its job would create it. It returns nil if r is
// not in PreRun, if the job was deleted (even if another job has its id), if the definition
// needs the scope exec and r lacks it, or if r lacks values for its inputs.
func (s *Admission) newest(ctx context.Context, r run.Run) (*run.Run, error) {
	if r.State != run.PreRun || r.JobID == "" {
		return nil, nil
	}
	stored, err := s.store.LoadJob(ctx, r.Tenant, r.JobID)
	if errors.Is(err, port.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read job %s: %w", r.JobID, err)
	}
	if !stored.OwnsVersion(r.JobVersion) {
		return nil, nil
	}
	inputs, ok := stored.Definition.FitInputs(r.Inputs)
	newest := s.host.NewRun(stored, s.policy, r.Parameters, inputs, r.Override)
	if !ok || len(job.CheckExpanded(newest)) > 0 {
		return nil, nil // the run has no values for the newest definition
	}
	if s.host.NeedsExec(newest.Work) && !r.Exec {
		return nil, nil // the creator of the run lacks the scope exec
	}
	return &newest, nil
}

// admits reports whether Admit still has to admit the run: it needs a slot of its pool, or is
// queued for one.
func admits(r run.Run) bool {
	return r.State == run.Pending || r.AwaitsAdmission() || r.State == run.ActionRunning && r.Queued()
}

// admittedRoute returns the route of a run that was admitted before: to its end, to a wait, or
// to Reconciling. Its generation is 0, so that no state takes over the wait of another
// execution.
func (s *Admission) admittedRoute(r run.Run) run.Route {
	route := run.RouteOf(r, s.now())
	route.Generation = 0
	if !r.State.Terminal() && r.State != run.PreRun && r.State != run.Retrying {
		route.Next = run.StepReconciling
	}
	return route
}

// AwaitSlot handles the state Queued: it stores the token, which the commit that
// grants the slot completes.
func (s *Admission) AwaitSlot(ctx context.Context, in StepInput) error { return s.wait(ctx, in) }
