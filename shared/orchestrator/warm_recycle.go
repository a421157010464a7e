package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// endKept marks the kept machine of an attempt as ending, before the call that destroys it, so
// that no sweep recycles it. ours is false if the record shows that the machine no longer
// belongs to the attempt. Then no call for the attempt may change it. For a machine that is not
// kept, endKept only returns true.
func (s *Machines) endKept(ctx context.Context, ref run.WarmRef, owner port.MachineOwner) (ours bool, err error) {
	for range port.CommitTries {
		if ref == (run.WarmRef{}) {
			return true, nil
		}
		w, found, err := s.warmRecord(ctx, ref)
		if err != nil || !found {
			return err == nil, err // a record is deleted after its machine is gone
		}
		mine := w.Run == owner.RunID && w.Attempt == owner.Attempt
		if w.Phase == run.WarmEnding || w.Phase != run.WarmClaimed || !mine {
			return w.Phase == run.WarmEnding, nil
		}
		w.Phase = run.WarmEnding
		if err := s.store.SaveWarm(ctx, w); err == nil {
			return true, nil
		} else if !errors.Is(err, port.ErrConflict) {
			return false, fmt.Errorf("cannot store the end of warm machine %s: %w", ref.ID, err)
		}
	}
	return false, fault.New(fault.Unavailable, "too many concurrent changes of warm machine %s; retry", ref.ID)
}

// warmRecord returns the record of a warm machine, if there is one.
func (s *Machines) warmRecord(ctx context.Context, ref run.WarmRef) (w run.WarmMachine, found bool, err error) {
	have, err := s.store.WarmMachines(ctx, run.PoolRef{Tenant: ref.Tenant, ID: ref.Pool})
	if err != nil {
		return w, false, fmt.Errorf("cannot read the record of warm machine %s: %w", ref.ID, err)
	}
	i := slices.IndexFunc(have, func(w run.WarmMachine) bool { return w.ID == ref.ID })
	if i < 0 {
		return w, false, nil
	}
	return have[i], true, nil
}

// recyclable inspects the machine of an ended attempt. ok reports that its pool recycles
// machines, and that it is stopped in a state that another attempt can use. again is then its
// record for the recycling.
func (s *Sweeper) recyclable(ctx context.Context, p run.Pool, w run.WarmMachine) (again run.WarmMachine, ok bool, err error) {
	if !p.Recycles() || !w.Machine.Known() {
		return w, false, nil
	}
	m, err := s.runner.Inspect(ctx, w.Machine)
	if errors.Is(err, port.ErrNotFound) {
		return w, false, nil
	}
	if err != nil {
		return w, false, fmt.Errorf("cannot inspect warm machine %s: %w", w.Machine.ID, err)
	}
	owner := port.MachineOwner{Tenant: w.Tenant, RunID: w.Run, Attempt: w.Attempt}
	if m.Phase != port.MachineGone || m.Kept != w.Ref() || m.Owner != owner || !w.Recyclable(m.Exit, m.Digest) {
		return w, false, nil
	}
	return w.Clearing(m.Version), true, nil
}

// recycle prepares the machine of an ended attempt for another one. The record is committed
// before the call, and each sweep repeats the call until its result is committed.
func (s *Sweeper) recycle(ctx context.Context, w run.WarmMachine) error {
	warm, ok := s.runner.(port.WarmMachines)
	if !ok {
		return nil
	}
	w, err := s.saveWarm(ctx, w)
	if errors.Is(err, port.ErrConflict) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot store a warm machine: %w", err)
	}
	if room, err := s.hasRoom(ctx, w); err != nil || !room { // another sweep has created machines
		return errors.Join(err, s.endWarm(ctx, w))
	}
	made, err := warm.Recycle(ctx, w.Machine, port.WarmSpec{Placement: w.Placement, Warm: w.Ref(), WarmKey: w.Key, Name: w.Name(), App: w.App})
	if f := startFault(err); err != nil && f.Code != fault.Unavailable && f.Code != fault.Throttled {
		s.log.WarnContext(ctx, "a warm machine cannot be recycled and is destroyed", "pool", w.Pool, "machine", w.Machine.ID, "error", err)
		return s.endWarm(ctx, w)
	}
	if err != nil {
		return fmt.Errorf("cannot recycle warm machine %s: %w", w.Machine.ID, err)
	}
	if made.Digest != w.Digest { // the tag now refers to another image
		return s.endWarm(ctx, w)
	}
	if _, err := s.saveWarm(ctx, w.Cleared(made.Machine)); err != nil && !errors.Is(err, port.ErrConflict) {
		return fmt.Errorf("cannot store a warm machine: %w", err)
	}
	return nil
}
