package container

import (
	"maps"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/moby/moby/api/types/container"

	"github.com/sortie-dev/sortie/shared/port"
)

// kind is the Runner of the machines of this adapter.
const kind = "container"

// The labels of every container.
const (
	keyCluster = "dev.sortie.cluster"
	keyName    = "dev.sortie.machine"
	keyTenant  = "dev.sortie.tenant"
	keyRun     = "dev.sortie.run"
	keyAttempt = "dev.sortie.attempt"
)

func labels(cluster string, spec port.LaunchSpec) map[string]string {
	return map[string]string{
		keyCluster: cluster, keyName: spec.Name, keyTenant: spec.Owner.Tenant, keyRun: spec.Owner.RunID,
		keyAttempt: strconv.Itoa(spec.Owner.Attempt),
	}
}

// owner returns the attempt in the labels of a container.
func owner(labels map[string]string) port.MachineOwner {
	attempt, err := strconv.Atoi(labels[keyAttempt])
	if err != nil {
		attempt = 0 // not a container of an attempt
	}
	return port.MachineOwner{Tenant: labels[keyTenant], RunID: labels[keyRun], Attempt: attempt}
}

// converted returns the status of a container.
func (r *Runner) converted(c container.InspectResponse) port.MachineStatus {
	m := port.MachineStatus{
		Machine: port.Machine{Runner: kind, ID: c.ID}, Name: c.Config.Labels[keyName], Owner: owner(c.Config.Labels),
		Phase: phase(c.State.Status), CreatedAt: moment(c.Created),
	}
	if m.Phase == port.MachineGone && moment(c.State.FinishedAt).IsZero() && c.State.Status != container.StateDead {
		m.Phase = port.MachineEnding // the engine does not have the exit code yet
	}
	if m.Phase == port.MachineRunning {
		m.Address = address(c.NetworkSettings)
	}
	if m.Phase == port.MachineGone {
		m.Exit = exit(c.State, r.notes.of(c.ID))
	}
	return m
}

// address returns the address of a container in the first of its networks. It is empty without
// one, as in the network of the host.
func address(s *container.NetworkSettings) string {
	if s == nil {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(s.Networks)) {
		if n := s.Networks[name]; n != nil && n.IPAddress.IsValid() {
			return n.IPAddress.String()
		}
	}
	return ""
}

// stateStopped is a state of Podman: the program has ended, and its exit is being
// recorded.
const stateStopped container.ContainerState = "stopped"

// phase converts the engine's state. An unknown state proves nothing.
func phase(state container.ContainerState) port.MachinePhase {
	switch state {
	case container.StateCreated, "configured", "initialized":
		return port.MachineCreating
	case container.StateRunning, container.StatePaused:
		return port.MachineRunning
	case container.StateRemoving, stateStopped, "stopping":
		return port.MachineEnding
	case container.StateExited, container.StateDead:
		return port.MachineGone
	}
	return port.MachineUnknown
}

// moment parses a time of the engine. It returns the zero time if the engine has no time, or
// writes the zero time for an event that has not happened.
func moment(text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Year() <= 1970 {
		return time.Time{}
	}
	return at.UTC()
}

// signalBase is added to the number of the signal that ended a program.
const signalBase = 128

// exit returns how a program ended. The engine does not distinguish a program that exits with
// 137 from a killed one. exit reports a kill if Sortie stopped the program or its memory was
// exhausted.
func exit(s *container.State, n note) *port.Exit {
	x := &port.Exit{Code: s.ExitCode, OOM: s.OOMKilled, Requested: n.Requested, Host: n.Host, At: moment(s.FinishedAt)}
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		if x.Code == signalBase+int(signal) && (x.Requested || x.OOM) {
			x.Signal = int(signal)
		}
	}
	if x.OOM && x.Signal == 0 {
		x.OOM = false // another process of the container was killed, and the program ended by itself
	}
	return x
}
