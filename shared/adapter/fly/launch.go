package fly

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Launch implements port.Runner: it creates the machine, or adopts the live one
// of the same name and owner.
func (r *Runner) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	in, err := r.input(spec)
	if err != nil {
		return port.MachineStatus{}, fault.Wrap(err, fault.LaunchRefused, "cannot launch the machine: %v", err)
	}
	app := spec.App
	if !slices.Contains(r.apps(spec.Placement), app) {
		app = r.AppOf(spec.Placement, spec.Name)
	}
	if !slices.Contains(r.cfg.Apps, app) { // its machines would be in no list
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "cannot launch the machine: unknown app %q of the pool, want %s", app, strings.Join(r.cfg.Apps, " or "))
	}
	regions := r.regions(spec.Placement, spec.Region)
	for i, region := range regions {
		if err := r.pace(ctx, app); err != nil {
			return port.MachineStatus{}, err
		}
		in.Region = region
		made, err := r.create(ctx, app, in)
		switch verdict := classify(err); {
		case verdict == fine:
			return r.converted(app, made), nil
		case verdict == nameTaken:
			return r.adoptNamed(ctx, app, spec, err)
		case verdict == unknown:
			return r.adoptLost(ctx, app, spec, err)
		case verdict == noRoom && i+1 < len(regions):
			r.log.Info("no room for a machine in this region", "run_id", spec.Owner.RunID, "attempt", spec.Owner.Attempt, "region", region, "next", regions[i+1])
		default:
			return port.MachineStatus{}, launchFailure(ctx, err)
		}
	}
	panic("unreachable: there is always a region to try")
}

// create makes one creation call. Its timeout leaves time for the lookups after it.
func (r *Runner) create(ctx context.Context, app string, in machineInput) (*machine, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.CreateTimeout)
	defer cancel()
	made, err := r.client.Launch(ctx, app, in)
	if err == nil && made.ID == "" {
		return nil, errors.New("the answer has no machine")
	}
	return made, err
}

// namedID matches Fly's error for a name that exists.
var namedID = regexp.MustCompile(`machine ID (\w+) already exists`)

// adoptNamed returns the machine with the name if it belongs to this attempt.
func (r *Runner) adoptNamed(ctx context.Context, app string, spec port.LaunchSpec, conflict error) (port.MachineStatus, error) {
	const what = "find out who has the machine's name"
	answer, ok := errors.AsType[*apiError](conflict)
	var match []string
	if ok {
		match = namedID.FindStringSubmatch(answer.Error())
	}
	if match == nil {
		return r.adoptLost(ctx, app, spec, conflict)
	}
	found, err := r.client.Get(ctx, app, match[1])
	if classify(err) == noMachine { // it is not visible yet, or not any more
		return port.MachineStatus{}, fault.Wrap(conflict, fault.Unavailable, "cannot %s: Fly does not show the machine", what)
	}
	if err != nil {
		return port.MachineStatus{}, failure(ctx, err, what)
	}
	if found.known() == nil {
		return port.MachineStatus{}, fault.Wrap(conflict, fault.Unavailable, "cannot %s: its host does not answer", what)
	}
	if !r.owns(found, spec) {
		return port.MachineStatus{}, fault.Wrap(conflict, fault.LaunchRefused, "the machine's name belongs to another machine")
	}
	r.log.Info("adopted the machine that has the name", "run_id", spec.Owner.RunID, "attempt", spec.Owner.Attempt, "machine", found.ID, "app", app)
	return r.converted(app, found), nil
}

// adoptLost searches for the machine that a creation without a clear response may have created:
// at once and, because lists lag, once more.
func (r *Runner) adoptLost(ctx context.Context, app string, spec port.LaunchSpec, lost error) (port.MachineStatus, error) {
	const what = "launch the machine"
	query := url.Values{
		"metadata." + keyRun: {spec.Owner.RunID}, "metadata." + keyCluster: {r.cfg.Cluster}, "include_deleted": {"true"},
	}
	for look := range 2 {
		if look > 0 && !r.sleep(ctx, r.cfg.LookAgain) {
			break
		}
		if ctx.Err() != nil {
			break
		}
		found, err := r.client.List(ctx, app, query.Encode())
		if err != nil {
			r.log.Info("cannot look for a machine whose creation was not answered",
				"run_id", spec.Owner.RunID, "attempt", spec.Owner.Attempt, "app", app, "error", err)
			continue
		}
		if m := r.pick(found, spec); m != nil {
			r.log.Info("adopted the machine whose creation was not answered",
				"run_id", spec.Owner.RunID, "attempt", spec.Owner.Attempt, "machine", m.ID, "app", app)
			return r.converted(app, m), nil
		}
	}
	if ctx.Err() != nil {
		return port.MachineStatus{}, failure(ctx, lost, what)
	}
	return port.MachineStatus{}, fault.Wrap(lost, fault.Unavailable, "cannot %s: no clear answer from Fly", what)
}

// pick returns the newest live machine of the attempt. If all are gone, it returns the newest
// of them.
func (r *Runner) pick(found []*machine, spec port.LaunchSpec) *machine {
	var best *machine
	for _, m := range found {
		if !r.owns(m, spec) {
			continue
		}
		alive := phase(m.State) != port.MachineGone
		bestAlive := best != nil && phase(best.State) != port.MachineGone
		if best == nil || (alive && !bestAlive) || (alive == bestAlive && m.CreatedAt > best.CreatedAt) {
			best = m
		}
	}
	return best
}

// owns reports whether a machine belongs to this attempt.
func (r *Runner) owns(m *machine, spec port.LaunchSpec) bool {
	return m.Name == spec.Name && m.metadata(keyCluster) == r.cfg.Cluster &&
		m.metadata(keyTenant) == spec.Owner.Tenant && m.metadata(keyRun) == spec.Owner.RunID &&
		m.metadata(keyAttempt) == strconv.Itoa(spec.Owner.Attempt)
}

// maxStopTimeout is the longest time that Fly waits between SIGTERM and SIGKILL on machines
// with shared CPUs (Fly: kill_timeout). Longer graces are reduced to it.
const maxStopTimeout = limit.CancelGrace

// memoryPerCPU is the least memory of a machine with shared CPUs, in MiB for each.
const memoryPerCPU = 256

// input converts the spec for Fly. It sets every field whose default would rerun a failed
// worker or stop it with another signal.
func (r *Runner) input(spec port.LaunchSpec) (machineInput, error) {
	metadata := map[string]string{
		keyCluster: r.cfg.Cluster, keyTenant: spec.Owner.Tenant, keyRun: spec.Owner.RunID,
		keyAttempt: strconv.Itoa(spec.Owner.Attempt),
	}
	for key, value := range metadata {
		if err := checkMetadata(key, value); err != nil {
			return machineInput{}, err
		}
	}
	if !dnsName.MatchString(spec.Name) {
		return machineInput{}, errors.New("its name is not 1 to 63 of a-z, 0-9 and -")
	}
	if spec.Image == "" {
		return machineInput{}, errors.New("it has no image")
	}
	stop := &stopConfig{Signal: "SIGTERM"}
	if spec.StopGrace > 0 {
		stop.Timeout = duration(min(spec.StopGrace, maxStopTimeout))
	}
	cpus := max(spec.CPUs, 1)
	memory := spec.MemoryMB
	if memory <= 0 {
		memory = cpus * memoryPerCPU
	}
	return machineInput{
		Name: spec.Name, SkipServiceRegistration: true, SkipSecrets: true,
		Config: &machineConfig{
			Image: spec.Image, Env: maps.Clone(spec.Env), Metadata: metadata, AutoDestroy: true,
			Restart:    &restartPolicy{Policy: "no"},
			Guest:      &guest{CPUKind: "shared", CPUs: cpus, MemoryMB: memory},
			Init:       machineInit{Cmd: slices.Clone(spec.Command)},
			StopConfig: stop,
			DNS:        &dnsConfig{SkipRegistration: true},
		},
	}, nil
}

var dnsName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)
