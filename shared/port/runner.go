package port

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/run"
)

// Runner creates machines, one per attempt.
//
// Every call is idempotent. Callers give each call a deadline; an adapter that
// reaches it returns an Unavailable fault. Failures are faults: Throttled
// (retry later), Capacity and Image (no machine was created), LaunchRefused
// (permanent), Unavailable (the result is unknown; a Launch with the same name
// is safe, because a live machine with that name is adopted). A Capacity or Image fault
// that is not Retryable will not change by itself. Absence from List
// proves nothing; a machine that Inspect returns as MachineGone is gone.
type Runner interface {
	// Launch creates the machine, or adopts the live machine of the same name,
	// tenant, run and attempt. The phase of the result is the one known at the
	// time, usually not yet MachineRunning.
	Launch(ctx context.Context, spec LaunchSpec) (MachineStatus, error)
	// Inspect returns one machine. It returns ErrNotFound if the platform does
	// not know the machine, which proves nothing right after a launch.
	Inspect(ctx context.Context, m Machine) (MachineStatus, error)
	// Wait returns as soon as the machine is observed in the phase
	// (MachineRunning or MachineGone) or a later one, and a wait for
	// MachineRunning as soon as the machine has a StartFault. When limit (1 s to 60 s)
	// is over, it returns the machine as it is then and no error; the caller
	// checks the phase.
	Wait(ctx context.Context, m Machine, phase MachinePhase, limit time.Duration) (MachineStatus, error)
	// List calls each for every live machine that this Sortie has created, in any
	// order, one call at a time, until each returns false. It may lag behind;
	// machines that are gone may be missing. A part of the platform that cannot be
	// read, such as an app, does not hide the others: List continues, and its error
	// names each part that failed.
	List(ctx context.Context, each func(MachineStatus) bool) error
	// Stop sends SIGTERM and, after the grace, SIGKILL. It waits for neither.
	// It returns nil if the machine is gone or unknown.
	Stop(ctx context.Context, m Machine, grace time.Duration) error
	// Destroy kills and removes the machine. It does not wait until the machine
	// is gone. It returns nil if the machine is gone or unknown.
	Destroy(ctx context.Context, m Machine) error
}

// LaunchSpec describes the machine of an attempt.
type LaunchSpec struct {
	// Placement is the runner and its settings; zero is the default runner with its own.
	run.Placement
	// Name is unique among live machines: at most 63 of [a-z0-9-].
	Name  string
	Image string
	// Command are the arguments of the image's program; empty leaves them to the image.
	Command []string
	// App is one of the runner's StartLimits; empty lets the runner choose.
	App string
	// Region is the platform's name of a region; empty lets the platform
	// choose.
	Region string
	Env    map[string]string
	// CPUs and MemoryMB are the size; MemoryMB is a multiple of 256.
	CPUs, MemoryMB int
	// StopGrace is the time between SIGTERM and SIGKILL when the platform
	// itself stops the machine.
	StopGrace time.Duration
	// MaxLife is when the platform ends the machine if nothing else has, counted from
	// its creation: a backstop above every limit of the attempt. 0 is never.
	MaxLife time.Duration
	Owner   MachineOwner
	// Keep identifies the record of a warm machine that stays, stopped, after its program has
	// ended. It is zero for a machine that is gone then. Only StartWarm uses it.
	Keep run.WarmRef
	// JobID is the job of the run; empty for another run. ScheduledAt is the time of its
	// firing; zero without one.
	JobID       string
	ScheduledAt time.Time
	// PodSpec is the pod specification of the job, a JSON object; empty without one. It
	// has a meaning on Kubernetes only.
	PodSpec json.RawMessage
}

// MachineOwner is the attempt that a machine belongs to. The platform stores it
// as metadata.
type MachineOwner struct {
	Tenant, RunID string
	Attempt       int
}

// MachinePhase is the phase of a machine's life.
type MachinePhase string

// The phases of a machine in order. MachineUnknown means a state that the
// adapter does not know, and proves nothing.
const (
	MachineUnknown  MachinePhase = "unknown"
	MachineCreating MachinePhase = "creating"
	MachineRunning  MachinePhase = "running"
	// MachineEnding: the program has ended or is being stopped; the machine
	// still exists.
	MachineEnding MachinePhase = "ending"
	MachineGone   MachinePhase = "gone"
)

// Machine identifies a machine. Calls use Runner, App, Cluster and ID; ID has at
// most 200 characters.
type Machine = run.Machine

// MachineStatus is a machine as the platform reports it. Its Pool is empty.
type MachineStatus struct {
	Machine
	Name  string
	Phase MachinePhase
	Owner MachineOwner
	// Warm is the record of a warm machine that no attempt was started on; its Owner is
	// zero. It is zero for another machine.
	Warm run.WarmRef
	// Kept is the Keep of the spec that the machine was started with, while the machine
	// exists. Its Phase is MachineGone once its program has ended and the machine is
	// stopped: it runs nothing until it is recycled. Owner, Exit and Started are those of its
	// last start.
	Kept      run.WarmRef
	CreatedAt time.Time
	// Digest is that of the machine's image; empty if the platform does not report it.
	Digest string
	// Exit is set once the platform has reported how the program ended. It may
	// stay nil for a machine that is gone.
	Exit *Exit
	// Address is that of the machine for programs outside of it, without a port; empty if the
	// platform reports none.
	Address string
	// Started: the platform reports that the program was started. It may stay false for a
	// machine that Launch has created.
	Started bool
	// StartFault is why the platform does not start the machine: Capacity, Image or
	// LaunchRefused, with the platform's message. It is nil for a machine that may still
	// start, and for one whose program has run. The machine exists until it is destroyed
	// or gone.
	StartFault *fault.Fault
	// Waiting is why a machine that may still start has not started, in the platform's
	// words; empty if the platform shows no reason.
	Waiting string
}

// Exit is how a machine's program ended. An adapter whose platform reports the
// kill of a machine without a signal sets Signal to 9.
type Exit = run.Exit

// StartLimits is a capability of a Runner whose platform limits how often machines
// are created in each of its places.
type StartLimits interface {
	// StartLimits returns the places of a placement with the time between two
	// creations; none if its platform documents no limit. It is constant.
	StartLimits(where run.Placement) []run.StartPace
	// AppOf returns the place that a launch without an App uses for the machine
	// name; empty without places.
	AppOf(where run.Placement, machineName string) string
}

// WarmMachines is a capability of a Runner whose machines can be created stopped, and
// started later. Its faults are those of Runner.
type WarmMachines interface {
	// Prepare creates a stopped machine, or adopts the one of the same name and record. Its
	// phase is MachineCreating until it can be started, and then MachineEnding.
	Prepare(ctx context.Context, spec WarmSpec) (MachineStatus, error)
	// StartWarm makes a prepared machine that of an attempt, and starts it: the result has
	// the Owner of the spec, and no Warm. Only the first call for a machine starts it; a
	// repeated call of the same attempt returns it. Name, App and Region of the spec are
	// ignored. A spec with Keep starts only the version of m. A fault other than Unavailable and Throttled says that the call has not
	// started the machine and that no later one will.
	StartWarm(ctx context.Context, m Machine, spec LaunchSpec) (MachineStatus, error)
	// Recycle makes a machine that was kept after an attempt one of Prepare again: the
	// environment and the command of the attempt are removed, and the result has the Warm of
	// the spec, no Owner, and another Version. It changes only the version of m. A repeated
	// call returns the machine. A fault other than Unavailable and Throttled says that the
	// machine cannot be recycled.
	Recycle(ctx context.Context, m Machine, spec WarmSpec) (MachineStatus, error)
}

// WarmSpec describes a warm machine.
type WarmSpec struct {
	run.Placement
	// Warm identifies the record. The platform stores it as metadata.
	Warm run.WarmRef
	run.WarmKey
	// Name, App and Region are as in LaunchSpec; Region is in the key.
	Name, App string
}

// RunnerLists is a capability of a Runner that dispatches to several.
type RunnerLists interface {
	// ListOf is List for the machines of one runner; empty is the default one.
	ListOf(ctx context.Context, runner string, each func(MachineStatus) bool) error
}

// MachineLogs is a capability of a Runner: it reads the output of a machine's
// program.
type MachineLogs interface {
	// Logs returns what the program has written so far to its standard output and
	// error, in the order of the writes. The platform may have shortened it, and
	// then marks the cut. Logs works for a while after the machine is gone.
	// ErrNotFound if the platform does not know the machine or keeps no log.
	Logs(ctx context.Context, m Machine) ([]byte, error)
}
