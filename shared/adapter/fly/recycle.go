package fly

import (
	"context"
	"errors"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// recycles describes Recycle in errors.
const recycles = "recycle the warm machine"

// Recycle implements port.WarmMachines in one call. The call replaces the configuration of the
// attempt with that of Prepare and starts nothing. It names the version that was seen stopped
// after the attempt, so it never changes a machine that has another attempt. After a call
// without a clear response, Recycle reads whether that call, or another one for the same
// record, was applied.
func (r *Runner) Recycle(ctx context.Context, m port.Machine, spec port.WarmSpec) (port.MachineStatus, error) {
	in, err := r.prepared(spec)
	if err == nil && m.Version == "" {
		err = errors.New("the machine has no version")
	}
	if err = errors.Join(err, errUnlocated(m)); err != nil {
		return port.MachineStatus{}, fault.Wrap(err, fault.LaunchRefused, "cannot %s: %v", recycles, err)
	}
	in.Name, in.Region = "", "" // both are fixed
	made, err := r.update(ctx, m, in, m.Version)
	verdict := classify(err)
	switch verdict {
	case fine:
		if r.waits(made, spec) {
			return r.converted(m.App, made), nil
		}
	case unknown, changed, busy, wrongState:
	default:
		return port.MachineStatus{}, launchFailure(ctx, err)
	}
	found, seen := r.client.Get(ctx, m.App, m.ID)
	switch {
	case seen != nil:
		return port.MachineStatus{}, launchFailure(ctx, seen)
	case found.known() == nil:
		return port.MachineStatus{}, fault.New(fault.Unavailable, "cannot %s: its host does not answer", recycles)
	case r.waits(found, spec):
		return r.converted(m.App, found), nil
	case ended(found.State) && found.State != "stopped", verdict == changed && found.InstanceID != m.Version:
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "cannot %s: it is %s in version %s, want the stopped version %s", recycles, found.State, found.InstanceID, m.Version)
	}
	return port.MachineStatus{}, failure(ctx, err, recycles)
}

// waits reports whether the machine is stopped and has the record of the spec.
func (r *Runner) waits(m *machine, spec port.WarmSpec) bool {
	now := r.converted("", m)
	return m.State == "stopped" && now.Warm == spec.Warm && m.metadata(keyCluster) == r.cfg.Cluster
}
