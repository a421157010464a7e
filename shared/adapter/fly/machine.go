package fly

import (
	"fmt"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// Metadata of every machine.
const (
	keyCluster = "orchestrator"
	keyTenant  = "tenant"
	keyRun     = "run_id"
	keyAttempt = "attempt"
	// A warm machine on which no attempt was started has keyPool and keyWarm. A machine that
	// stays after its attempt has keyPool and keyKept.
	keyPool = "pool"
	keyWarm = "warm"
	keyKept = "kept"
)

// checkMetadata returns an error for a value that the API's filters cannot find.
func checkMetadata(key, value string) error {
	if len(value) > 255 {
		return fmt.Errorf("%s is longer than 255 characters", key)
	}
	for _, c := range value {
		if c < ' ' || c > '~' {
			return fmt.Errorf("%s has a character that is not printable ASCII", key)
		}
	}
	return nil
}

// kind is the Runner of the machines of this adapter.
const kind = "fly"

// named matches apps and ids that are valid as one part of a URL's path.
var named = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// located reports whether the machine's app and id are valid in a URL.
func located(m port.Machine) bool { return named.MatchString(m.App) && named.MatchString(m.ID) }

// converted returns the status of a machine of Fly.
func (r *Runner) converted(app string, m *machine) port.MachineStatus {
	attempt, err := strconv.Atoi(m.metadata(keyAttempt))
	if err != nil {
		attempt = 0 // not a machine of an attempt
	}
	created, err := time.Parse(time.RFC3339, m.CreatedAt)
	if err != nil {
		created = time.Time{} // no valid time in Fly's response
	}
	warm := platform.WarmRef{Tenant: m.metadata(keyTenant), Pool: m.metadata(keyPool), ID: m.metadata(keyWarm)}
	if warm.ID != "" {
		return port.MachineStatus{
			Machine: port.Machine{Runner: kind, App: app, Region: m.Region, ID: m.ID, Version: m.InstanceID},
			Name:    m.Name, Phase: phase(m.State), Warm: warm, CreatedAt: created.UTC(), Digest: m.ImageRef.Digest,
		}
	}
	status := port.MachineStatus{
		Machine: port.Machine{Runner: kind, App: app, Region: m.Region, ID: m.ID},
		Name:    m.Name, Phase: phase(m.State),
		Owner: port.MachineOwner{
			Tenant: m.metadata(keyTenant), RunID: m.metadata(keyRun), Attempt: attempt,
		},
		CreatedAt: created.UTC(), Digest: m.ImageRef.Digest, Exit: exit(m), Started: started(m), Address: m.PrivateIP,
	}
	if warm.ID = m.metadata(keyKept); warm.ID != "" {
		status.Version = m.InstanceID
		if status.Phase != port.MachineGone {
			status.Reuse = warm
		}
		if r.rests(m) {
			status.Phase = port.MachineGone
		}
	}
	return status
}

// exitLag is how long after the end of a program Fly may show the machine as stopped without
// the exit.
const exitLag = 30 * time.Second

// rests reports whether the program of a kept machine has ended.
func (r *Runner) rests(m *machine) bool {
	if m.State != "stopped" || exit(m) != nil {
		return m.State == "stopped"
	}
	changed, err := time.Parse(time.RFC3339, m.UpdatedAt)
	return started(m) && err == nil && r.cfg.Clock.Now().Sub(changed) >= exitLag // the exit is lost
}

// phase converts Fly's state. Any other state proves nothing: Sortie does not
// create machines that are suspended, replaced or migrated.
func phase(state string) port.MachinePhase {
	switch state {
	case "created", "creating", "starting", "restarting", "updating", "replacing":
		return port.MachineCreating
	case "started":
		return port.MachineRunning
	case "stopping", "stopped", "failed", "launch_failed", "destroying":
		return port.MachineEnding
	case "destroyed":
		return port.MachineGone
	}
	return port.MachineUnknown
}

// started reports whether the program of the machine's current configuration was started at
// least once. Fly reports the request of a start and the start itself with the same type.
// Events before an update belong to an earlier attempt.
func started(m *machine) bool {
	for _, e := range m.Events {
		switch {
		case e == nil:
		case e.Type == "update":
			return false
		case e.Type == "exit", e.Type == "start" && e.Status == "started":
			return true
		}
	}
	return false
}

// exit returns the last exit of the machine's program. It returns nil if Fly reports no exit,
// or if the program was started again or replaced. Fly lists the newest event first.
func exit(m *machine) *port.Exit {
	for _, e := range m.Events {
		if e == nil {
			continue
		}
		switch e.Type {
		case "start", "launch", "restart", "update":
			return nil
		case "exit":
			return exitOf(e)
		}
	}
	return nil
}

// sourceHost is the source of an exit event if the local Fly Machines API ended the machine for
// its own shutdown.
const sourceHost = "host"

// killedCode is the exit code of a program that SIGKILL has ended.
const killedCode = 128 + int(syscall.SIGKILL)

func exitOf(e *machineEvent) *port.Exit {
	if e.Request == nil {
		return nil
	}
	told := e.Request.ExitEvent
	if m := e.Request.MonitorEvent; m != nil && m.ExitEvent != nil {
		told = m.ExitEvent
	}
	if told == nil || told.Restarting {
		return nil
	}
	x := &port.Exit{
		Code: told.ExitCode, Signal: max(told.Signal, told.GuestSignal, 0),
		OOM: told.OOMKilled, Requested: told.RequestedStop, At: told.ExitedAt.UTC(),
	}
	switch {
	case x.Code == 0 && x.Signal > 0:
		x.Code = 128 + x.Signal // Fly omits the code if it is 0
	case x.Code == killedCode && x.Signal == 0 && told.GuestExitCode != killedCode && !x.OOM:
		x.Signal = int(syscall.SIGKILL) // the machine was killed from outside; its init did not see it
	}
	x.Host = x.Requested && e.Source == sourceHost
	if told.ExitedAt.IsZero() {
		x.At = time.UnixMilli(e.Timestamp).UTC()
	}
	return x
}
