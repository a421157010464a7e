package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// Launch implements port.Runner. It creates the container under its name and starts it. If the
// container exists and was not started, Launch starts it. It also adopts a container of the
// attempt whose program has ended by itself: another container would run the attempt twice.
func (r *Runner) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	if err := check(spec); err != nil {
		return port.MachineStatus{}, fault.Wrap(err, fault.LaunchRefused, "cannot launch the container: %v", err)
	}
	e, err := r.connected(ctx)
	if err != nil {
		return port.MachineStatus{}, err
	}
	settings := platform.SettingsOf[platform.ContainerSettings](spec.Placement)
	if settings == nil {
		settings = &platform.ContainerSettings{}
	}
	if socket := settings.Socket; socket != "" && e.address != "unix://"+socket {
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "cannot launch the container: no engine at the socket %s of the pool, want that of the engine at %s", socket, e.address)
	}
	// Before the pull: an adopted container does not need its image.
	if found, err := r.byName(ctx, e, spec); err != nil || found.ID != "" {
		return r.started(ctx, e, found, spec, err)
	}
	if err := r.pull(ctx, e, spec.Image); err != nil {
		return port.MachineStatus{}, err
	}
	made, err := e.api.ContainerCreate(ctx, r.creation(e, spec, cmp.Or(settings.Network, e.route.Network)))
	if err != nil && !nameInUse(err) {
		return port.MachineStatus{}, launchFailure(ctx, err)
	}
	if err == nil && made.ID != "" {
		for _, warning := range made.Warnings {
			r.cfg.Log.WarnContext(ctx, "warning of the container engine", "run_id", spec.Owner.RunID, "attempt", spec.Owner.Attempt, "warning", warning)
		}
	}
	found, looked := r.byName(ctx, e, spec)
	if looked == nil && found.ID == "" {
		looked = fault.Wrap(err, fault.Unavailable, "cannot launch the container: it is gone right after its creation")
	}
	return r.started(ctx, e, found, spec, looked)
}

// name returns the name of the container of a machine.
func (r *Runner) name(machine string) string { return "sortie-" + r.cfg.Cluster + "-" + machine }

// byName returns the container with the machine's name, or one with an empty ID if there is no
// such container. A destroyed container loses its name.
func (r *Runner) byName(ctx context.Context, e *engine, spec port.LaunchSpec) (container.InspectResponse, error) {
	const what = "look for the container of the attempt"
	answer, err := e.api.ContainerInspect(ctx, r.name(spec.Name), client.ContainerInspectOptions{})
	if errdefs.IsNotFound(err) {
		return container.InspectResponse{}, nil
	}
	found := answer.Container
	if err == nil && (found.State == nil || found.Config == nil || found.ID == "") {
		err = errors.New("the answer has no container")
	}
	if err != nil {
		return container.InspectResponse{}, failure(ctx, err, what)
	}
	if !maps.Equal(subset(found.Config.Labels), labels(r.cfg.Cluster, spec)) {
		return container.InspectResponse{}, fault.New(fault.LaunchRefused, "cannot launch the container: its name %s belongs to another container", r.name(spec.Name))
	}
	if phase(found.State.Status) != port.MachineGone || !r.notes.of(found.ID).Requested {
		return found, nil
	}
	renamed := r.name(spec.Name) + "-" + found.ID[:12]
	if _, err := e.api.ContainerRename(ctx, found.ID, client.ContainerRenameOptions{NewName: renamed}); err != nil && !errdefs.IsNotFound(err) {
		return container.InspectResponse{}, failure(ctx, err, "rename the container that ended")
	}
	return container.InspectResponse{}, nil
}

// subset returns the labels of Sortie. Engines and images add others.
func subset(all map[string]string) map[string]string {
	own := map[string]string{}
	for _, key := range []string{keyCluster, keyName, keyTenant, keyRun, keyAttempt} {
		if value, ok := all[key]; ok {
			own[key] = value
		}
	}
	return own
}

// started starts a container that was only created, and returns it.
func (r *Runner) started(ctx context.Context, e *engine, c container.InspectResponse, spec port.LaunchSpec, err error) (port.MachineStatus, error) {
	if err != nil {
		return port.MachineStatus{}, err
	}
	if phase(c.State.Status) != port.MachineCreating {
		r.cfg.Log.InfoContext(ctx, "adopted the container of the attempt", "run_id", spec.Owner.RunID, "attempt", spec.Owner.Attempt, "machine", c.ID)
		return r.converted(c), nil
	}
	if _, err := e.api.ContainerStart(ctx, c.ID, client.ContainerStartOptions{}); err != nil {
		now, again := r.inspect(ctx, e, c.ID)
		if again == nil && phase(now.State.Status) != port.MachineCreating && !moment(now.State.StartedAt).IsZero() {
			return r.converted(now), nil
		}
		return port.MachineStatus{}, r.notStarted(ctx, e, c.ID, err)
	}
	now, err := r.inspect(ctx, e, c.ID)
	if err != nil {
		return port.MachineStatus{}, fault.Wrap(err, fault.Unavailable, "cannot launch the container: cannot look it up: %s", words(err))
	}
	return r.converted(now), nil
}

// notStarted returns the fault of a container that could not be started. If the engine refuses
// the start, notStarted removes the container, so that no machine exists.
func (r *Runner) notStarted(ctx context.Context, e *engine, id string, cause error) error {
	err := launchFailure(ctx, cause)
	if fault.Is(err, fault.Unavailable) {
		return err
	}
	if removed := r.removeUnstarted(ctx, e, id, "remove the container that cannot start"); removed != nil {
		return removed
	}
	return err
}

// pidsLimit is the largest number of processes and threads of a container.
const pidsLimit = 4096

// memoryPerCPU is the memory of a machine whose spec has none, in MB for each CPU.
const memoryPerCPU = 256

// creation returns the request for a container.
func (r *Runner) creation(e *engine, spec port.LaunchSpec, network string) client.ContainerCreateOptions {
	cpus := max(spec.CPUs, 1)
	memory := int64(spec.MemoryMB) << 20
	if memory <= 0 {
		memory = int64(cpus*memoryPerCPU) << 20
	}
	if e.cpus > 0 {
		cpus = min(cpus, e.cpus) // an engine refuses more than its host has
	}
	pids := int64(pidsLimit)
	host := &container.HostConfig{
		NetworkMode: container.NetworkMode(network),
		CapDrop:     []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"},
		ReadonlyRootfs: true, Tmpfs: map[string]string{"/tmp": tmpfs, "/var/tmp": tmpfs, "/run": tmpfs},
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		LogConfig:     container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": fmt.Sprint(2 * logsLimit)}},
		Resources:     container.Resources{Memory: memory, NanoCPUs: int64(cpus) * 1e9, PidsLimit: &pids},
	}
	if e.swap {
		host.MemorySwap = memory
	}
	if e.init {
		host.Init = new(true)
	}
	return client.ContainerCreateOptions{
		Name: r.name(spec.Name),
		Config: &container.Config{
			Image: spec.Image, Cmd: slices.Clone(spec.Command), Env: environment(spec.Env, e.route.Addresses),
			Hostname: spec.Name, Labels: labels(r.cfg.Cluster, spec), AttachStdout: true, AttachStderr: true,
			StopSignal: "SIGTERM", Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		},
		HostConfig: host,
	}
}

// tmpfs are the options of the file systems in memory. They count as memory of the
// container.
const tmpfs = "rw,nosuid,nodev,exec,mode=1777"

// environment returns the variables, sorted. It replaces the addresses of Sortie with those by
// which containers reach it.
func environment(env, addresses map[string]string) []string {
	var pairs []string
	for old, other := range addresses {
		pairs = append(pairs, "//"+old, "//"+other)
	}
	replace := strings.NewReplacer(pairs...)
	var list []string
	for _, key := range slices.Sorted(maps.Keys(env)) {
		list = append(list, key+"="+replace.Replace(env[key]))
	}
	return list
}

var nameForm = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

// memoryStep is the unit of LaunchSpec.MemoryMB.
const memoryStep = 256

func check(spec port.LaunchSpec) error {
	switch {
	case !nameForm.MatchString(spec.Name):
		return errors.New("its name is not 1 to 63 of a-z, 0-9 and -")
	case spec.Image == "":
		return errors.New("it has no image")
	case spec.MemoryMB%memoryStep != 0 || spec.MemoryMB < 0:
		return fmt.Errorf("memory of %d MB, want a multiple of %d", spec.MemoryMB, memoryStep)
	}
	for what, value := range map[string]string{"tenant": spec.Owner.Tenant, "run": spec.Owner.RunID} {
		if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) {
			return fmt.Errorf("the id of its %s has a character that is not printable ASCII", what)
		}
	}
	return nil
}
