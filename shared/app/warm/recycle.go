package warm

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// recyclable inspects the machine of an ended attempt. ok reports that its pool recycles
// machines, and that it is stopped in a state that another attempt can use. again is then its
// record for the recycling.
func (s *Machines) recyclable(ctx context.Context, p platform.Pool, w platform.WarmMachine) (again platform.WarmMachine, ok bool, err error) {
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
	if m.Phase != port.MachineGone || m.Reuse != w.Ref() || m.Owner != owner || !w.Recyclable(m.Exit.Clean(), m.Digest) {
		return w, false, nil
	}
	return w.Clearing(m.Version), true, nil
}

// recycle prepares the machine of an ended attempt for another one. The record is committed
// before the call, and each sweep repeats the call until its result is committed.
func (s *Machines) recycle(ctx context.Context, w platform.WarmMachine) error {
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
	if f := port.StartFault(err); err != nil && f.Code != fault.Unavailable && f.Code != fault.Throttled {
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
