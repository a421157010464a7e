package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// overtakeLimit is how long a worker's report may be ahead of the commit of its
// machine's id.
const overtakeLimit = 2 * time.Second

// Machines inspects the machines of runs and commits their state.
type Machines struct {
	*Lifecycle
	runner port.Runner
}

// NewMachines returns the machines of a runner.
func NewMachines(life *Lifecycle, runner port.Runner) *Machines { return &Machines{life, runner} }

// factOf returns the fact that follows from the status of an attempt's machine; nil if it proves
// nothing.
func (s *Machines) factOf(ctx context.Context, attempt int, machine port.MachineStatus) fact {
	of := func(f run.Fact) run.Fact { return run.Shown{Machine: machine.Machine, Fact: f} }
	switch {
	case machine.Phase == port.MachineRunning:
		return constantFact(of(run.MachineRunning{Attempt: attempt}))
	case machine.StartFault != nil:
		return func(r run.Run) run.Fact {
			return of(run.StartFailed{
				Attempt: attempt, Fault: machine.StartFault, Fallbacks: s.fallbacks(ctx, r), Gone: machine.Phase == port.MachineGone,
			})
		}
	case machine.Phase == port.MachineGone:
		return constantFact(of(run.MachineGone{Attempt: attempt, Exit: machine.Exit}))
	case machine.Phase == port.MachineCreating:
		return constantFact(of(run.MachineWaits{Attempt: attempt, Message: machine.Waiting}))
	}
	return nil
}

// inspectInto inspects the machine of a run and fills in f. The phase stays empty if the
// inspection proves nothing: after an error, or if the runner does not know the machine before
// the start limit. The exit is set once the program has ended, possibly before the machine is
// gone.
func (s *Machines) inspectInto(ctx context.Context, r run.Run, f *run.Evaluated) {
	machine, err := s.runner.Inspect(ctx, r.Attempt.Machine)
	f.Machine = r.Attempt.Machine
	switch {
	case errors.Is(err, port.ErrNotFound) && !s.now().Before(r.Attempt.StartBy):
		f.Phase = run.PhaseGone
		return
	case err != nil:
		s.warn(ctx, r, "cannot inspect the machine", err)
		return
	case machine.Phase == port.MachineRunning:
		f.Phase = run.PhaseRunning
		return
	case machine.Phase == port.MachineGone:
		f.Phase = run.PhaseGone
	}
	if f.Exit, f.StartFault = machine.Exit, machine.StartFault; f.StartFault != nil {
		f.Fallbacks = s.fallbacks(ctx, r)
	}
}

// goneWithin waits at most limit until the machine is gone, and returns its exit. From
// visibleBy on, a machine that the platform does not know is gone too: records that were
// restored from a backup may name machines that no longer exist.
func (s *Machines) goneWithin(ctx context.Context, m port.Machine, limit time.Duration, visibleBy time.Time) (exit *run.Exit, gone bool, err error) {
	machine, err := s.runner.Wait(ctx, m, port.MachineGone, limit)
	if errors.Is(err, port.ErrNotFound) {
		return nil, !s.now().Before(visibleBy), nil
	}
	return machine.Exit, err == nil && machine.Phase == port.MachineGone, err
}

// discard destroys a machine that no run needs and waits at most limit until it is gone. It
// deletes the run's uploads again, because the worker may have uploaded after they were
// cleared.
func (s *Machines) discard(ctx context.Context, outputs *Outputs, m port.MachineStatus, ref run.Ref, limit time.Duration) error {
	if err := s.runner.Destroy(ctx, m.Machine); err != nil {
		return err
	}
	if _, gone, err := s.goneWithin(ctx, m.Machine, limit, time.Time{}); !gone {
		return err // a sweep finds it again
	}
	r, err := s.store.Load(ctx, ref)
	if err != nil || !r.State.Terminal() {
		return err
	}
	return outputs.clearUploads(ctx, r)
}

// machineOf returns the attempt's machine; zero if it has none. A fast worker may report before
// its launch has committed the machine. Then machineOf waits for that commit, and searches the
// runner's list.
func (s *Machines) machineOf(ctx context.Context, r run.Run) (port.Machine, error) {
	if r.Attempt.Machine.Known() {
		return r.Attempt.Machine, nil
	}
	if r.Attempt.Warm != nil {
		return r.Attempt.Warm.Machine, nil // it may be starting
	}
	latest, err := s.await(ctx, r)
	if err != nil || latest.Known() {
		return latest, err
	}
	return s.listedMachine(ctx, r)
}

// listedMachine returns the attempt's machine in the runner's list; zero if it has none.
func (s *Machines) listedMachine(ctx context.Context, r run.Run) (port.Machine, error) {
	var found port.Machine
	err := s.listFor(ctx, r, func(m port.MachineStatus) bool {
		if m.Owner == ownerOf(r) {
			found = m.Machine
		}
		return !found.Known()
	})
	if err != nil && !found.Known() {
		return port.Machine{}, fmt.Errorf("cannot list the machines: %w", err)
	}
	return found, nil
}

// listFor lists the machines of the attempt's runner. If possible, it lists no other runner,
// which may be unreachable.
func (s *Machines) listFor(ctx context.Context, r run.Run, each func(port.MachineStatus) bool) error {
	if lists, ok := s.runner.(port.RunnerLists); ok {
		return lists.ListOf(ctx, r.Attempt.Place().Runner, each)
	}
	return s.runner.List(ctx, each)
}

// await reads the record again. If the worker has reported, it waits until the record has the
// machine, at most overtakeLimit. It returns errNextAttempt if the run has another attempt.
func (s *Machines) await(ctx context.Context, r run.Run) (port.Machine, error) {
	timeUp, stop := s.clock.NewTimer(overtakeLimit)
	defer stop()
	for {
		changed, endWatch := s.changes.Watch(r.Ref())
		latest, err := s.reload(ctx, r)
		if err != nil || latest.Attempt.Machine.Known() || r.Attempt.Report == nil {
			endWatch()
			return latest.Attempt.Machine, err
		}
		select {
		case <-changed:
		case <-timeUp:
			endWatch()
			return port.Machine{}, nil
		case <-ctx.Done():
			endWatch()
			return port.Machine{}, ctx.Err()
		}
	}
}

// endReusable moves the record of a machine that would be recycled to WarmEnding, before the
// machine is destroyed, so that no sweep recycles it. ours is false if the machine no longer
// belongs to the attempt, so that no call for the attempt may change it. For a zero ref,
// endReusable only returns true.
func (s *Machines) endReusable(ctx context.Context, ref platform.WarmRef, owner port.MachineOwner) (ours bool, err error) {
	for range port.CommitTries {
		if ref == (platform.WarmRef{}) {
			return true, nil
		}
		w, found, err := s.warmRecord(ctx, ref)
		if err != nil || !found {
			return err == nil, err // a record is deleted after its machine is gone
		}
		mine := w.Run == owner.RunID && w.Attempt == owner.Attempt
		if w.Phase == platform.WarmEnding || w.Phase != platform.WarmClaimed || !mine {
			return w.Phase == platform.WarmEnding, nil
		}
		w.Phase = platform.WarmEnding
		if err := s.store.SaveWarm(ctx, w); err == nil {
			return true, nil
		} else if !errors.Is(err, port.ErrConflict) {
			return false, fmt.Errorf("cannot store the end of warm machine %s: %w", ref.ID, err)
		}
	}
	return false, fault.New(fault.Unavailable, "too many concurrent changes of warm machine %s; retry", ref.ID)
}

// warmRecord returns the record of a warm machine, if there is one.
func (s *Machines) warmRecord(ctx context.Context, ref platform.WarmRef) (w platform.WarmMachine, found bool, err error) {
	have, err := s.store.WarmMachines(ctx, platform.PoolRef{Tenant: ref.Tenant, ID: ref.Pool})
	if err != nil {
		return w, false, fmt.Errorf("cannot read the record of warm machine %s: %w", ref.ID, err)
	}
	i := slices.IndexFunc(have, func(w platform.WarmMachine) bool { return w.ID == ref.ID })
	if i < 0 {
		return w, false, nil
	}
	return have[i], true, nil
}

func ownerOf(r run.Run) port.MachineOwner {
	return port.MachineOwner{Tenant: r.Tenant, RunID: r.ID, Attempt: r.Attempt.Number}
}
