package orchestrator

import (
	"context"
	"errors"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Lifecycle commits facts of every kind. It acts on the effects of a commit once;
// the sweep repeats those that fail. A slot that a commit releases is granted to
// the next queued run, if possible in the same transaction. It is safe for
// concurrent use.
type Lifecycle struct {
	*Records
	executions port.Executions
	pool       string
	limit      int
	maxEvents  int
	// forwardLimit is Config.ForwardLimit.
	forwardLimit *int
}

// NewLifecycle returns a Lifecycle whose runs share the configured pool.
func NewLifecycle(records *Records, executions port.Executions, config Config) *Lifecycle {
	return &Lifecycle{
		Records: records, executions: executions, pool: config.Pool, limit: config.MaxMachines, maxEvents: config.MaxEvents,
		forwardLimit: config.ForwardLimit,
	}
}

// apply is applyTo for a run that is read first.
func (s *Lifecycle) apply(ctx context.Context, ref run.Ref, f fact) (run.Run, error) {
	r, err := s.store.Load(ctx, ref)
	if err != nil {
		return run.Run{}, err
	}
	return s.applyTo(ctx, r, f)
}

// applyTo decides a fact about a record that was just read, commits the decision
// and acts on it. It returns the newest record, changed or not.
func (s *Lifecycle) applyTo(ctx context.Context, r run.Run, f fact) (run.Run, error) {
	return s.decide(ctx, r, f, s.commit)
}

// commit writes a decision and acts on it. A slot that it releases is granted to
// the first queued run in the same transaction.
func (s *Lifecycle) commit(ctx context.Context, d run.Decision) (run.Run, error) {
	grants := d.Lease == run.LeaseRelease
	for range commitTries {
		decisions := []run.Decision{d}
		var gate *run.StartGate
		if grants {
			first, err := s.nextQueued(ctx, d.Run.Tenant, d.Run.Slot.Pool)
			if err != nil {
				return run.Run{}, err
			}
			decisions, gate = append(decisions, first.decisions...), first.gate
		}
		err := s.write(ctx, decisions, gate)
		conflict, lost := errors.AsType[*port.Conflict](err)
		switch {
		case lost && conflict.Ref != d.Run.Ref():
			continue // the queued run changed; read the queue again
		case len(decisions) > 1 && errors.Is(err, port.ErrNoSlot):
			grants = false // the limit was lowered; the slot stays free
			continue
		case err != nil:
			return run.Run{}, err
		}
		if d.Lease == run.LeaseRelease && len(decisions) == 1 {
			s.fill(ctx, d.Run.Tenant, d.Run.Slot.Pool)
		}
		d.Run.Version++
		return d.Run, nil
	}
	return run.Run{}, fault.New(fault.Unavailable, "too many concurrent changes of the pool's queue; retry")
}

// write commits decisions together, with the gate of the last one, and acts on
// their effects.
func (s *Lifecycle) write(ctx context.Context, decisions []run.Decision, gate *run.StartGate) error {
	if err := s.Records.write(ctx, decisions, gate); err != nil {
		return err
	}
	ctx = WithEffectBudget(ctx)
	for _, d := range decisions {
		s.act(ctx, d.Run, d.Effects)
	}
	return nil
}
