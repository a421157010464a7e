package fly

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Prepare implements port.WarmMachines. The machine has the image and the size of its record.
// It gets its environment from StartWarm.
func (r *Runner) Prepare(ctx context.Context, spec port.WarmSpec) (port.MachineStatus, error) {
	in, err := r.prepared(spec)
	if err != nil {
		return port.MachineStatus{}, fault.Wrap(err, fault.LaunchRefused, "cannot prepare the machine: %v", err)
	}
	app := spec.App
	if !slices.Contains(r.apps(spec.Placement), app) {
		app = r.AppOf(spec.Placement, spec.Name)
	}
	if !slices.Contains(r.cfg.Apps, app) { // its machines would be in no list
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "cannot prepare the machine: unknown app %q of the pool", app)
	}
	in.Region = r.regions(spec.Placement, spec.Region)[0]
	made, err := r.create(ctx, app, in)
	switch classify(err) {
	case fine:
		return r.converted(app, made), nil
	case nameTaken:
		return r.adoptWarm(ctx, app, spec, err)
	}
	return port.MachineStatus{}, launchFailure(ctx, err)
}

// prepared returns the configuration of a machine on which no attempt was started.
func (r *Runner) prepared(spec port.WarmSpec) (machineInput, error) {
	in, err := r.input(port.LaunchSpec{Placement: spec.Placement, Name: spec.Name, Image: spec.Image, CPUs: spec.CPUs, MemoryMB: spec.MemoryMB})
	if err != nil {
		return in, err
	}
	in.SkipLaunch, in.Config.AutoDestroy = true, false
	in.Config.Metadata = map[string]string{
		keyCluster: r.cfg.Cluster, keyTenant: spec.Warm.Tenant, keyPool: spec.Warm.Pool, keyWarm: spec.Warm.ID,
	}
	return in, nil
}

// adoptWarm returns the machine with the name if it is the machine of the record.
func (r *Runner) adoptWarm(ctx context.Context, app string, spec port.WarmSpec, conflict error) (port.MachineStatus, error) {
	const what = "find out who has the warm machine's name"
	answer, ok := errors.AsType[*apiError](conflict)
	var match []string
	if ok {
		match = namedID.FindStringSubmatch(answer.Error())
	}
	if match == nil {
		return port.MachineStatus{}, fault.Wrap(conflict, fault.Unavailable, "cannot %s", what)
	}
	found, err := r.client.Get(ctx, app, match[1])
	if err != nil {
		return port.MachineStatus{}, failure(ctx, err, what)
	}
	if m := r.converted(app, found); m.Warm == spec.Warm && found.metadata(keyCluster) == r.cfg.Cluster {
		return m, nil
	}
	return port.MachineStatus{}, fault.Wrap(conflict, fault.LaunchRefused, "the warm machine's name belongs to another machine")
}

// StartWarm implements port.WarmMachines in one call, which changes the machine's configuration
// and starts it. The call names the version of the stopped machine. So only the first of two
// concurrent calls is applied: Fly would restart a running machine. StartWarm first reads a
// machine whose record has no version, or another one. A machine that is to be kept starts only
// in the recorded version.
func (r *Runner) StartWarm(ctx context.Context, m port.Machine, spec port.LaunchSpec) (port.MachineStatus, error) {
	in, err := r.input(spec)
	if err != nil || !located(m) {
		err = errors.Join(err, errUnlocated(m))
		return port.MachineStatus{}, fault.Wrap(err, fault.LaunchRefused, "cannot %s: %v", startsWarm, err)
	}
	in.Name, in.Region = "", "" // both are fixed
	if keep := spec.Reuse; keep.ID != "" {
		in.Config.AutoDestroy = false
		in.Config.Metadata[keyPool], in.Config.Metadata[keyKept] = keep.Pool, keep.ID
	}
	var found *machine
	if m.Version != "" {
		var started port.MachineStatus
		if started, found, err = r.startVersion(ctx, m, m.Version, in, spec); found == nil {
			return started, err
		}
	} else if found, err = r.lookWarm(ctx, m, spec); err != nil {
		return port.MachineStatus{}, err
	}
	switch {
	case r.starts(found, spec):
		return r.converted(m.App, found), nil
	case spec.Reuse.ID != "" && found.InstanceID != m.Version: // a later attempt may claim that version
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "cannot %s: it was changed meanwhile", startsWarm)
	case found.State != "stopped":
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "cannot %s: it is %s, want a stopped machine that no attempt has", startsWarm, found.State)
	}
	started, _, err := r.startVersion(ctx, m, found.InstanceID, in, spec)
	return started, err
}

// startsWarm describes StartWarm in errors.
const startsWarm = "start the warm machine"

// startVersion starts a version of the machine. After a call without a clear response, it reads
// whether that call, or another one of the same attempt, was applied. other is the machine if
// it has another version, otherwise nil.
func (r *Runner) startVersion(
	ctx context.Context, m port.Machine, version string, in machineInput, spec port.LaunchSpec,
) (status port.MachineStatus, other *machine, err error) {
	started, err := r.update(ctx, m, in, version)
	verdict := classify(err)
	switch verdict {
	case fine:
		if r.starts(started, spec) {
			return r.converted(m.App, started), nil, nil
		}
	case unknown, changed, busy, wrongState:
	default:
		return port.MachineStatus{}, nil, launchFailure(ctx, err)
	}
	found, seen := r.lookWarm(ctx, m, spec)
	switch {
	case seen == nil && r.starts(found, spec):
		return r.converted(m.App, found), nil, nil
	case fault.Is(seen, fault.LaunchRefused):
		return port.MachineStatus{}, nil, seen
	case verdict == wrongState:
		return port.MachineStatus{}, nil, launchFailure(ctx, err)
	case seen == nil && verdict == changed:
		other = found
	}
	return port.MachineStatus{}, other, failure(ctx, errors.Join(err, seen), startsWarm)
}

// lookWarm reads a machine that is to start for the spec. Fault: LaunchRefused if another
// attempt uses the machine.
func (r *Runner) lookWarm(ctx context.Context, m port.Machine, spec port.LaunchSpec) (*machine, error) {
	found, err := r.client.Get(ctx, m.App, m.ID)
	switch {
	case err != nil:
		return nil, launchFailure(ctx, err)
	case found.known() == nil:
		return nil, fault.New(fault.Unavailable, "cannot %s: its host does not answer", startsWarm)
	case !r.starts(found, spec) && found.metadata(keyWarm) == "":
		return nil, fault.New(fault.LaunchRefused, "cannot %s: it belongs to another attempt", startsWarm)
	}
	return found, nil
}

func errUnlocated(m port.Machine) error {
	if located(m) {
		return nil
	}
	return fmt.Errorf("malformed machine %q of app %q", m.ID, m.App)
}

// starts reports whether the machine was started for the attempt of the spec.
func (r *Runner) starts(m *machine, spec port.LaunchSpec) bool {
	return m.metadata(keyWarm) == "" && m.metadata(keyCluster) == r.cfg.Cluster &&
		m.metadata(keyTenant) == spec.Owner.Tenant && m.metadata(keyRun) == spec.Owner.RunID &&
		m.metadata(keyAttempt) == strconv.Itoa(spec.Owner.Attempt)
}

// update changes and starts the machine if it has this version, and returns it.
func (r *Runner) update(ctx context.Context, m port.Machine, in machineInput, version string) (*machine, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.CreateTimeout)
	defer cancel()
	in.CurrentVersion = version
	return r.client.Update(ctx, m.App, m.ID, in)
}
