package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// sweepBatch is how many records one part of a sweep takes at a time.
const sweepBatch = 500

// strayWait is how long a sweep waits for a machine that nobody wants to be
// gone: others wait for the sweep.
const strayWait = time.Second

// Sweep holds the record against the runner, the executions and the clock, and
// mends what differs. early is how far ahead of its time a record counts as
// overdue: 0 as a rule, more after a restart, when whoever was to act may be
// gone. One part that fails does not keep the others from their work, nor does
// one that takes long, where ctx has a deadline: each has half of the time that
// is left. The error joins what went wrong. It needs all ports but Signer. Sweeps
// may overlap.
func (s *Service) Sweep(ctx context.Context, early time.Duration) error {
	var failed []error
	for _, part := range []func(context.Context) error{
		s.RecordReception, s.sweepMachines,
		func(ctx context.Context) error { return s.sweepDue(ctx, early) },
		s.sweepPools, s.sweepOutputs, s.sweepRecords,
	} {
		failed = append(failed, s.inHalf(ctx, part))
	}
	return errors.Join(failed...)
}

// inHalf does a part of a sweep in half of the time that is left.
func (s *Service) inHalf(ctx context.Context, part func(context.Context) error) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		return part(ctx)
	}
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(-deadline.Sub(s.now())/2))
	defer cancel()
	return part(ctx)
}

// sweepMachines tells each run what the runner shows about its machine, and
// destroys every machine that no run wants. Most machines run for a run that
// knows it; those are passed over without a read of each.
func (s *Service) sweepMachines(ctx context.Context) error {
	machines, err := s.ports.Runner.List(ctx)
	if err != nil {
		return fmt.Errorf("cannot list the machines: %w", err)
	}
	settled, err := s.sweepUnlisted(ctx, machines)
	failed := []error{err}
	for i, m := range machines {
		if !settled[i] {
			failed = append(failed, s.sweepMachine(ctx, m))
		}
	}
	return errors.Join(failed...)
}

func (s *Service) sweepMachine(ctx context.Context, m port.Machine) error {
	ref := run.Ref{Tenant: m.Owner.Tenant, ID: m.Owner.RunID}
	r, err := s.ports.Store.Load(ctx, ref)
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		return err
	}
	wanted := err == nil && r.State.HasMachine() && r.Attempt.Number == m.Owner.Attempt &&
		(r.Attempt.MachineID == m.ID || r.Attempt.MachineID == "" && r.Attempt.MachineName == m.Name)
	if !wanted {
		if m.Phase == port.MachineGone {
			return nil
		}
		s.ports.Log.WarnContext(ctx, "a machine that no run wants is destroyed",
			"machine_id", m.ID, "run_id", m.Owner.RunID, "attempt", m.Owner.Attempt)
		if r.State.Terminal() {
			return s.discard(ctx, m, ref, strayWait)
		}
		return s.ports.Runner.Destroy(ctx, m.ID)
	}
	if r.Attempt.MachineID == "" {
		if _, err := s.applyTo(ctx, r, is(run.MachineCreated{Attempt: m.Owner.Attempt, MachineID: m.ID})); err != nil {
			return err
		}
	}
	if r.State == run.Running && m.Phase == port.MachineRunning || r.State == run.Terminating {
		return nil
	}
	return s.seen(ctx, ref, m.Owner.Attempt, m)
}

// sweepUnlisted looks up, one by one, the machines that the list does not show:
// absence proves nothing, a lookup does. settled are those of the list that run,
// and are the ones of runs that are Running.
func (s *Service) sweepUnlisted(ctx context.Context, machines []port.Machine) (settled []bool, err error) {
	listed := make(map[string]int, len(machines))
	for i := range machines {
		listed[machines[i].ID] = i
	}
	settled = make([]bool, len(machines))
	var failed []error
	var after run.Ref
	for {
		placed, err := s.ports.Store.WithMachine(ctx, after, sweepBatch)
		if err != nil {
			return settled, errors.Join(append(failed, fmt.Errorf("cannot read the runs with a machine: %w", err))...)
		}
		for _, p := range placed {
			after = p.Run
			i, is := listed[p.MachineID]
			if !is {
				failed = append(failed, s.sweepAbsent(ctx, p))
				continue
			}
			m := &machines[i]
			settled[i] = settled[i] || p.State == run.Running && m.Phase == port.MachineRunning &&
				m.Owner == port.MachineOwner{Tenant: p.Run.Tenant, RunID: p.Run.ID, Attempt: p.Attempt}
		}
		if len(placed) < sweepBatch {
			return settled, errors.Join(failed...)
		}
	}
}

func (s *Service) sweepAbsent(ctx context.Context, p port.Placement) error {
	m, err := s.ports.Runner.Inspect(ctx, p.MachineID)
	if errors.Is(err, port.ErrNotFound) {
		r, err := s.ports.Store.Load(ctx, p.Run)
		if errors.Is(err, port.ErrNotFound) || err == nil && (port.PlacementOf(r) != p || s.now().Before(r.Attempt.StartBy)) {
			return nil // it has moved on, or the machine may not be visible yet
		}
		if err != nil {
			return fmt.Errorf("cannot load the run: %w", err)
		}
		m = port.Machine{ID: p.MachineID, Phase: port.MachineGone}
	} else if err != nil {
		return fmt.Errorf("cannot look up machine %s: %w", p.MachineID, err)
	}
	return s.seen(ctx, p.Run, p.Attempt, m)
}

// sweepDue asks about the executions that should have acted on their record.
func (s *Service) sweepDue(ctx context.Context, early time.Duration) error {
	refs, err := s.ports.Store.Due(ctx, s.now().Add(early), sweepBatch)
	if err != nil {
		return fmt.Errorf("cannot read what is due: %w", err)
	}
	var failed []error
	for _, ref := range refs {
		if err := s.askExecution(ctx, ref); err != nil && !errors.Is(err, port.ErrNotFound) {
			failed = append(failed, fmt.Errorf("cannot mend run %s: %w", ref.ID, err))
		}
	}
	return errors.Join(failed...)
}

// askExecution does again what is pending, starts what never started, and finds
// the executions that ended without their run.
func (s *Service) askExecution(ctx context.Context, ref run.Ref) error {
	r, err := s.ports.Store.Load(ctx, ref)
	if err != nil {
		return err
	}
	for _, e := range r.Execution.Pending {
		if err := s.effect(ctx, r, e); err != nil {
			return err
		}
	}
	execution, err := s.ports.Executions.Describe(ctx, run.ExecutionName(ref, r.Execution.Start))
	switch {
	case errors.Is(err, port.ErrNotFound):
		return s.effect(ctx, r, run.Effect{Kind: run.EffectStart, Execution: run.ExecutionName(ref, r.Execution.Start)})
	case err != nil:
		return fmt.Errorf("cannot ask about the execution: %w", err)
	case execution.Status == port.ExecutionRunning && len(r.Execution.Pending) == 0 && s.now().Before(r.Execution.ActBy):
		return nil // it was asked early, and has time left
	case execution.Status == port.ExecutionRunning || r.State.Terminal():
		_, err = s.applyTo(ctx, r, is(run.ExecutionChecked{Done: execution.Status != port.ExecutionRunning}))
		return err
	}
	return s.replaceExecution(ctx, r, execution)
}

// replaceExecution begins a run's execution anew, or gives the run up. execution
// is the one that ended without the run's end, of the start in r.
func (s *Service) replaceExecution(ctx context.Context, r run.Run, execution port.Execution) error {
	cause := string(execution.Status)
	if execution.Error != "" {
		cause += ": " + execution.Error
	}
	r, err := s.applyTo(ctx, r, is(run.Restarted{Start: r.Execution.Start, Cause: cause}))
	if err != nil || r.State != run.Orphaned {
		return err
	}
	// Nobody is served what a lost attempt has left. What cannot be removed now
	// is left to the bucket's own rule, or goes with the machine.
	return s.clear(ctx, r, nil)
}

// sweepPools derives leases and lines from the records, and grants what is free.
func (s *Service) sweepPools(ctx context.Context) error {
	pools, err := s.ports.Store.Pools(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the pools: %w", err)
	}
	var failed []error
	for _, p := range pools {
		mended, err := s.ports.Store.Reconcile(ctx, p.Tenant, p.Pool)
		if err != nil {
			failed = append(failed, fmt.Errorf("cannot mend pool %s: %w", p.Pool, err))
			continue
		}
		if mended > 0 {
			s.ports.Log.WarnContext(ctx, "leases differed from the records and were mended", "pool", p.Pool, "rows", mended)
		}
		if p.Queued > 0 {
			s.fill(ctx, p.Tenant, p.Pool)
		}
	}
	return errors.Join(failed...)
}

// sweepOutputs deletes what has expired, a batch after the other. One that fails,
// or is not whole, is the last: what is left of it is the next sweep's.
func (s *Service) sweepOutputs(ctx context.Context) error {
	for {
		refs, err := s.ports.Store.OutputsDue(ctx, s.now(), sweepBatch)
		if err != nil {
			return fmt.Errorf("cannot read which outputs have expired: %w", err)
		}
		if err := s.deleteAll(ctx, refs); err != nil || len(refs) < sweepBatch {
			return err
		}
	}
}

// deleteAll deletes the bytes of several runs at once, as long as there is time:
// each waits for the object store more than it does anything.
func (s *Service) deleteAll(ctx context.Context, refs []run.Ref) error {
	failed := make([]error, len(refs)+1)
	var group errgroup.Group
	group.SetLimit(max(s.config.Deletions, 1))
	for i, ref := range refs {
		if ctx.Err() != nil {
			break
		}
		one := func() error {
			if err := s.deleteExpired(ctx, ref); !errors.Is(err, port.ErrNotFound) {
				failed[i] = err
			}
			return nil
		}
		if s.config.Deletions > 1 {
			group.Go(one)
		} else {
			_ = one() // here, where a caller's panic belongs to the caller
		}
	}
	_ = group.Wait()
	failed[len(refs)] = ctx.Err()
	return errors.Join(failed...)
}

func (s *Service) sweepRecords(ctx context.Context) error {
	for {
		forgotten, err := s.ports.Store.Purge(ctx, s.now(), sweepBatch)
		if err != nil {
			return fmt.Errorf("cannot forget expired records: %w", err)
		}
		if forgotten < sweepBatch {
			return nil
		}
	}
}
