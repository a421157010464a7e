package port

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Runner creates machines, one per attempt.
//
// Every call is idempotent. Callers set a deadline for each call; an adapter that reaches it
// returns an Unavailable fault. Failures are faults:
//
//   - Throttled: retry later.
//   - Capacity and Image: no machine was created. A fault that is not Retryable will not
//     change by itself.
//   - LaunchRefused: permanent.
//   - Unavailable: the result is unknown. A Launch with the same name is safe, because a live
//     machine with that name is adopted.
//
// A machine that List omits may still exist; one that Inspect returns as MachineGone is gone.
type Runner interface {
	// Launch creates the machine, or adopts the live machine of the same name, tenant, run and
	// attempt. The phase of the result is the one known at that time, usually not yet
	// MachineRunning.
	Launch(ctx context.Context, spec LaunchSpec) (MachineStatus, error)
	// Inspect returns one machine. It returns ErrNotFound if the platform does
	// not know the machine, which proves nothing right after a launch.
	Inspect(ctx context.Context, m Machine) (MachineStatus, error)
	// Wait returns once the machine is observed in the phase (MachineRunning or MachineGone) or
	// a later one. A wait for MachineRunning also returns once the machine has a StartFault.
	// After limit (1 s to 60 s) it returns the current status of the machine and no error; the
	// caller checks the phase.
	Wait(ctx context.Context, m Machine, phase MachinePhase, limit time.Duration) (MachineStatus, error)
	// List calls each for every live machine that this Sortie has created, in any order, one
	// call at a time, until each returns false. It may be out of date; machines that are gone
	// may be missing. If a part of the platform cannot be read, such as an app, List continues
	// with the others. Its error names each part that failed.
	List(ctx context.Context, each func(MachineStatus) bool) error
	// Stop sends SIGTERM and, after the grace period, SIGKILL. It does not wait for either. It
	// returns nil if the machine is gone or unknown.
	Stop(ctx context.Context, m Machine, grace time.Duration) error
	// Destroy kills and removes the machine. It does not wait until the machine
	// is gone. It returns nil if the machine is gone or unknown.
	Destroy(ctx context.Context, m Machine) error
}

// LaunchSpec describes the machine of an attempt.
type LaunchSpec struct {
	// Placement is the runner and its settings; zero means the default runner with its own
	// settings.
	platform.Placement
	// Name is unique among live machines: at most 63 of [a-z0-9-].
	Name  string
	Image string
	// Command lists the arguments of the image's program; empty means those of the image.
	Command []string
	// App is one of the runner's StartLimits; empty lets the runner choose.
	App string
	// Region is the platform's name of a region; empty lets the platform choose.
	Region string
	Env    map[string]string
	// CPUs and MemoryMB are the size. MemoryMB is a multiple of 256.
	CPUs, MemoryMB int
	// StopGrace is the time between SIGTERM and SIGKILL when the platform
	// itself stops the machine.
	StopGrace time.Duration
	// MaxLife is the time after the creation at which the platform ends the machine if nothing
	// else has. It is longer than every limit of the attempt. 0 means never.
	MaxLife time.Duration
	Owner   MachineOwner
	// Reuse identifies the record of a warm machine that is stopped, but not destroyed, when its
	// program has ended. It is zero for other machines. Only StartWarm uses it.
	Reuse platform.WarmRef
	// JobID is the job of the run; empty without a job. ScheduledAt is the time of its firing;
	// zero without one.
	JobID       string
	ScheduledAt time.Time
	// PodSpec is the pod specification of the job (a JSON object); empty without one. Only
	// Kubernetes uses it.
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

// The phases of a machine, in order. MachineUnknown is a state that the adapter does not know.
// It proves nothing.
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
type Machine = platform.Machine

// MachineStatus is a machine as the platform reports it. Its Pool is empty.
type MachineStatus struct {
	Machine
	Name  string
	Phase MachinePhase
	Owner MachineOwner
	// Warm identifies the record of a warm machine on which no attempt was started; Owner is
	// then zero. It is zero for other machines.
	Warm platform.WarmRef
	// Reuse is that of the spec with which the machine was started, while the machine
	// exists. Phase is MachineGone once its program has ended and the machine is stopped: it
	// runs nothing until it is recycled. Owner, Exit and Started are those of its last start.
	Reuse     platform.WarmRef
	CreatedAt time.Time
	// Digest is the digest of the machine's image; empty if the platform does not report it.
	Digest string
	// Exit is set once the platform has reported how the program ended. It may stay nil for a
	// machine that is gone.
	Exit *Exit
	// Address is the address at which programs outside of the machine can reach it, without a
	// port; empty if the platform reports none.
	Address string
	// Started: the platform reports that the program was started. It may stay false for a
	// machine that Launch has created.
	Started bool
	// StartFault says why the platform does not start the machine: Capacity, Image or
	// LaunchRefused, with the platform's message. It is nil for a machine that may still start,
	// or whose program has run. The machine exists until it is destroyed or gone.
	StartFault *fault.Fault
	// Waiting is the platform's message about why the machine has not started yet; empty
	// without a message.
	Waiting string
}

// Exit describes how a machine's program ended. If the platform reports a kill of the machine
// without a signal, the adapter sets Signal to 9.
type Exit = run.Exit

// StartLimits is an optional capability of a Runner whose platform limits how often machines
// are created in each of its places.
type StartLimits interface {
	// StartLimits returns the places of a placement, with the time between two creations; empty
	// if the platform documents no limit. The result is constant.
	StartLimits(where platform.Placement) []fleet.StartPace
	// AppOf returns the place in which a launch without an App creates the machine; empty
	// without places.
	AppOf(where platform.Placement, machineName string) string
}

// WarmMachines is an optional capability of a Runner that can create machines stopped and start
// them later. Its faults are those of Runner.
type WarmMachines interface {
	// Prepare creates a stopped machine, or adopts the one of the same name and record. Its
	// phase is MachineCreating until it can be started, and then MachineEnding.
	Prepare(ctx context.Context, spec WarmSpec) (MachineStatus, error)
	// StartWarm assigns a prepared machine to an attempt and starts it. The result has the Owner
	// of the spec, and no Warm. Only the first call for a machine starts it; a repeated call of
	// the same attempt returns the machine. Name, App and Region of the spec are ignored. With
	// Reuse, only a machine with the Version of m is started. A fault other than Unavailable and
	// Throttled means that the call has not started the machine and that no later call will.
	StartWarm(ctx context.Context, m Machine, spec LaunchSpec) (MachineStatus, error)
	// Recycle prepares a machine that was started with Reuse for another attempt: it removes the
	// environment and the command of the last one. The result has the Warm of the spec, no Owner,
	// and a new Version. Only a machine with the Version of m is changed; a repeated call returns
	// the machine. A fault other than Unavailable and Throttled means that the machine cannot be
	// recycled.
	Recycle(ctx context.Context, m Machine, spec WarmSpec) (MachineStatus, error)
}

// WarmSpec describes a warm machine.
type WarmSpec struct {
	platform.Placement
	// Warm identifies the record of the machine. The platform stores it as metadata.
	Warm platform.WarmRef
	platform.WarmKey
	// Name and App are as in LaunchSpec; Region is in the key.
	Name, App string
}

// RunnerLists is a capability of a Runner that dispatches to several runners.
type RunnerLists interface {
	// ListOf is List for the machines of one runner; empty means the default one.
	ListOf(ctx context.Context, runner string, each func(MachineStatus) bool) error
}

// MachineLogs is a capability of a Runner: it reads the output of a machine's
// program.
type MachineLogs interface {
	// Logs returns what the program has written so far to its standard output and error, in the
	// order of the writes. If the platform has shortened it, it marks the cut. Logs works for a
	// while after the machine is gone. It returns ErrNotFound if the platform does not know the
	// machine or keeps no log.
	Logs(ctx context.Context, m Machine) ([]byte, error)
}

// StartFault returns the fault of a failed launch. An error that is not a fault becomes
// Unavailable, because the machine may exist.
func StartFault(err error) *fault.Fault {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f
	}
	return fault.Wrap(err, fault.Unavailable, "the runner did not answer")
}
