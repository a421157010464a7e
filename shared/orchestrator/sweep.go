package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// sweepBatch is how many records one part of a sweep reads at a time.
const sweepBatch = 500

// strayWait is how long a sweep waits until a machine that it destroyed is gone.
const strayWait = time.Second

// Sweeper reconciles the records with the runner, the executions, the object store
// and the clock. Sweeps may overlap.
type Sweeper struct {
	*Machines
	outputs   *Outputs
	reception *Reception
	probe     Probe
	deletions int
	// claimed is set once the store is known to be claimed.
	claimed atomic.Bool
}

// NewSweeper returns a Sweeper.
func NewSweeper(machines *Machines, outputs *Outputs, reception *Reception, probe Probe, config Config) *Sweeper {
	return &Sweeper{Machines: machines, outputs: outputs, reception: reception, probe: probe, deletions: config.Deletions}
}

// Sweep runs every part of a sweep and returns the joined errors of all. early is
// how far ahead of its time a record counts as overdue: 0, or more after a restart,
// when the process that had to act may be gone. If ctx has a deadline, each part
// gets half of the remaining time, so that a slow part does not starve the others.
func (s *Sweeper) Sweep(ctx context.Context, early time.Duration) error {
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

// RecordReception probes whether workers can reach the API and stores the result.
// A sweep starts with it. If sweeps take long, it is also called beside them, once
// per SweepInterval.
func (s *Sweeper) RecordReception(ctx context.Context) error { return s.reception.record(ctx, s.probe) }

// inHalf runs a part in half of the remaining time.
func (s *Sweeper) inHalf(ctx context.Context, part func(context.Context) error) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		return part(ctx)
	}
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(-deadline.Sub(s.now())/2))
	defer cancel()
	return part(ctx)
}

// sweepMachines commits to each run what the runner shows about its machine, and
// destroys machines that no run needs. Most machines are running and belong to a
// Running run; those need no read of the record.
func (s *Sweeper) sweepMachines(ctx context.Context) error {
	machines, err := s.runner.List(ctx)
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
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return s.claim(ctx)
}

func (s *Sweeper) sweepMachine(ctx context.Context, m port.MachineStatus) error {
	ref := run.Ref{Tenant: m.Owner.Tenant, ID: m.Owner.RunID}
	r, err := s.store.Load(ctx, ref)
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		return err
	}
	needed := err == nil && r.State.HasMachine() && r.Attempt.Number == m.Owner.Attempt &&
		(r.Attempt.Machine.Key() == m.Key() || !r.Attempt.Machine.Known() && r.Attempt.MachineName == m.Name)
	if !needed {
		if m.Phase == port.MachineGone {
			return nil
		}
		if err != nil {
			if err := s.mayDestroyUnknown(ctx, m); err != nil {
				return err
			}
		}
		s.log.WarnContext(ctx, "a machine that no run needs is destroyed",
			"machine_id", m.ID, "run_id", m.Owner.RunID, "attempt", m.Owner.Attempt)
		if r.State.Terminal() {
			return s.discard(ctx, s.outputs, m, ref, strayWait)
		}
		return s.runner.Destroy(ctx, m.Machine)
	}
	if !r.Attempt.Machine.Known() {
		if _, err := s.applyTo(ctx, r, is(run.MachineCreated{Attempt: m.Owner.Attempt, Machine: m.Machine})); err != nil {
			return err
		}
	}
	if r.State == run.Running && m.Phase == port.MachineRunning || r.State == run.Terminating {
		return nil
	}
	return s.seen(ctx, ref, m.Owner.Attempt, m)
}

// sweepUnlisted inspects, one by one, the machines of runs that the list does not
// contain: absence from a list proves nothing, an inspection does. settled marks
// the machines of the list that are running and belong to a Running run.
func (s *Sweeper) sweepUnlisted(ctx context.Context, machines []port.MachineStatus) (settled []bool, err error) {
	listed := make(map[port.Machine]int, len(machines))
	for i := range machines {
		listed[machines[i].Key()] = i
	}
	settled = make([]bool, len(machines))
	var failed []error
	var after run.Ref
	for {
		placed, err := s.store.WithMachine(ctx, after, sweepBatch)
		if err != nil {
			return settled, errors.Join(append(failed, fmt.Errorf("cannot read the runs with a machine: %w", err))...)
		}
		for _, p := range placed {
			after = p.Run
			i, ok := listed[p.Machine.Key()]
			if !ok {
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

func (s *Sweeper) sweepAbsent(ctx context.Context, p port.Placement) error {
	m, err := s.runner.Inspect(ctx, p.Machine)
	if errors.Is(err, port.ErrNotFound) {
		r, err := s.store.Load(ctx, p.Run)
		if errors.Is(err, port.ErrNotFound) || err == nil && (port.PlacementOf(r) != p || s.now().Before(r.Attempt.StartBy)) {
			return nil // the run has moved on, or the machine may not be visible yet
		}
		if err != nil {
			return fmt.Errorf("cannot load the run: %w", err)
		}
		m = port.MachineStatus{Machine: p.Machine, Phase: port.MachineGone}
	} else if err != nil {
		return fmt.Errorf("cannot inspect machine %s: %w", p.Machine.ID, err)
	}
	return s.seen(ctx, p.Run, p.Attempt, m)
}

// sweepDue checks the executions that should have acted on their record.
func (s *Sweeper) sweepDue(ctx context.Context, early time.Duration) error {
	refs, err := s.store.Due(ctx, s.now().Add(early), sweepBatch)
	if err != nil {
		return fmt.Errorf("cannot read the overdue runs: %w", err)
	}
	var failed []error
	for _, ref := range refs {
		if err := s.checkExecution(ctx, ref); err != nil && !errors.Is(err, port.ErrNotFound) {
			failed = append(failed, fmt.Errorf("cannot reconcile run %s: %w", ref.ID, err))
		}
	}
	return errors.Join(failed...)
}

// checkExecution repeats pending effects, starts an execution that never started,
// and finds executions that ended without their run.
func (s *Sweeper) checkExecution(ctx context.Context, ref run.Ref) error {
	r, err := s.store.Load(ctx, ref)
	if err != nil {
		return err
	}
	for _, e := range r.Execution.Pending {
		if err := s.effect(ctx, r, e); err != nil {
			return err
		}
	}
	execution, err := s.executions.Describe(ctx, run.ExecutionName(ref, r.Execution.Start))
	switch {
	case errors.Is(err, port.ErrNotFound):
		return s.effect(ctx, r, run.Effect{Kind: run.EffectStart, Execution: run.ExecutionName(ref, r.Execution.Start)})
	case err != nil:
		return fmt.Errorf("cannot describe the execution: %w", err)
	case execution.Status == port.ExecutionRunning && len(r.Execution.Pending) == 0 && s.now().Before(r.Execution.ActBy):
		return nil // it was checked early and has time left
	case execution.Status == port.ExecutionRunning || r.State.Terminal():
		_, err = s.applyTo(ctx, r, is(run.ExecutionChecked{Done: execution.Status != port.ExecutionRunning}))
		return err
	}
	return s.replaceExecution(ctx, r, execution)
}

// ExecutionEnded checks a run whose execution is reported to have ended. If it
// ended without its run, it is replaced at once; the sweep would wait for ActBy.
// Reports may be repeated. One about an execution that was replaced, or about a run
// that has ended or expired, is ignored. Unavailable while the execution is still
// shown as running.
func (s *Sweeper) ExecutionEnded(ctx context.Context, ref run.Ref, name string) error {
	r, err := s.store.Load(ctx, ref)
	if errors.Is(err, port.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot load the run: %w", err)
	}
	if r.State.Terminal() || name != run.ExecutionName(ref, r.Execution.Start) {
		return nil
	}
	execution, err := s.executions.Describe(ctx, name)
	switch {
	case errors.Is(err, port.ErrNotFound), err == nil && execution.Status == port.ExecutionRunning:
		return fault.New(fault.Unavailable, "the end of execution %s is not visible yet", name)
	case err != nil:
		return fmt.Errorf("cannot describe the execution: %w", err)
	}
	return s.replaceExecution(ctx, r, execution)
}

// replaceExecution starts a new execution of a run, or orphans the run. execution
// is the one that ended without the run's end, of the start in r.
func (s *Sweeper) replaceExecution(ctx context.Context, r run.Run, execution port.Execution) error {
	cause := string(execution.Status)
	if execution.Error != "" {
		cause += ": " + execution.Error
	}
	r, err := s.applyTo(ctx, r, is(run.Restarted{Start: r.Execution.Start, Cause: cause}))
	if err != nil || r.State != run.Orphaned {
		return err
	}
	// The uploads of a lost attempt are not served. What cannot be removed now is
	// left to the bucket's lifecycle rule, or is removed with the machine.
	return s.outputs.clear(ctx, r, nil)
}

// sweepPools derives leases and queues from the records, and grants free slots.
func (s *Sweeper) sweepPools(ctx context.Context) error {
	pools, err := s.store.Pools(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the pools: %w", err)
	}
	var failed []error
	for _, p := range pools {
		changed, err := s.store.Reconcile(ctx, p.Tenant, p.Pool)
		if err != nil {
			failed = append(failed, fmt.Errorf("cannot reconcile pool %s: %w", p.Pool, err))
			continue
		}
		if changed > 0 {
			s.log.WarnContext(ctx, "leases differed from the records and were reconciled", "pool", p.Pool, "rows", changed)
		}
		if p.Queued > 0 {
			s.fill(ctx, p.Tenant, p.Pool)
		}
	}
	return errors.Join(failed...)
}

// sweepOutputs deletes expired objects batch by batch. A batch that fails, or is
// not full, is the last: the next sweep continues.
func (s *Sweeper) sweepOutputs(ctx context.Context) error {
	for {
		refs, err := s.store.OutputsDue(ctx, s.now(), sweepBatch)
		if err != nil {
			return fmt.Errorf("cannot read the expired outputs: %w", err)
		}
		if err := s.deleteAll(ctx, refs); err != nil || len(refs) < sweepBatch {
			return err
		}
	}
}

// deleteAll deletes the expired objects of runs concurrently until ctx ends; each
// deletion mostly waits for the object store.
func (s *Sweeper) deleteAll(ctx context.Context, refs []run.Ref) error {
	failed := make([]error, len(refs)+1)
	var group errgroup.Group
	group.SetLimit(max(s.deletions, 1))
	for i, ref := range refs {
		if ctx.Err() != nil {
			break
		}
		deleteOne := func() error {
			if err := s.outputs.deleteExpired(ctx, ref); !errors.Is(err, port.ErrNotFound) {
				failed[i] = err
			}
			return nil
		}
		if s.deletions > 1 {
			group.Go(deleteOne)
		} else {
			_ = deleteOne() // in this goroutine, so that a panic reaches the caller
		}
	}
	_ = group.Wait()
	failed[len(refs)] = ctx.Err()
	return errors.Join(failed...)
}

func (s *Sweeper) sweepRecords(ctx context.Context) error {
	for {
		purged, err := s.store.Purge(ctx, s.now(), sweepBatch)
		if err != nil {
			return fmt.Errorf("cannot purge expired records: %w", err)
		}
		if purged < sweepBatch {
			return nil
		}
	}
}
