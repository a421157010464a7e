package port

import (
	"context"
	"time"
)

// Runner makes machines, one per attempt.
//
// Every call may be repeated. Callers give each call a deadline; an adapter
// that meets it returns an Unavailable fault. Failures are faults: Throttled
// (try again later), Capacity and Image (the machine never was), LaunchRefused
// (never will be), Unavailable (nobody knows; a Launch under the same name is
// safe, because names are unique among live machines and found again). What a
// list does not show proves nothing; what Inspect shows as MachineGone is gone.
type Runner interface {
	// Launch creates the machine, or adopts the live one of the same name,
	// tenant, run and attempt. The answer's phase is what is known now: it is
	// seldom MachineRunning yet.
	Launch(ctx context.Context, spec LaunchSpec) (Machine, error)
	// Inspect looks one machine up. ErrNotFound where the platform does not
	// know the id, which right after a launch proves nothing.
	Inspect(ctx context.Context, id string) (Machine, error)
	// Wait returns as soon as the machine is seen in the phase (MachineRunning
	// or MachineGone) or beyond, or when limit (1 s to 60 s) is over, with
	// what is known then and no error: the caller looks at the phase.
	Wait(ctx context.Context, id string, phase MachinePhase, limit time.Duration) (Machine, error)
	// List tells all live machines that this Sortie has made, in any order. It
	// may lag behind; machines that are gone may be missing.
	List(ctx context.Context) ([]Machine, error)
	// Stop sends SIGTERM and, when the grace is over, SIGKILL. It does not wait
	// for either. nil where the machine is gone or was never known.
	Stop(ctx context.Context, id string, grace time.Duration) error
	// Destroy kills the machine and removes it. It does not wait until it is
	// gone. nil where the machine is gone or was never known.
	Destroy(ctx context.Context, id string) error
}

// MachineSpec says what machine an attempt wants.
type LaunchSpec struct {
	// Name is unique among live machines: at most 63 of [a-z0-9-].
	Name  string
	Image string
	// Region is the platform's name for the place; empty leaves it to the
	// platform.
	Region string
	Env    map[string]string
	// CPUs and MemoryMB are the size; MemoryMB is a multiple of 256.
	CPUs, MemoryMB int
	// StopGrace is the time between SIGTERM and SIGKILL when the platform
	// itself stops the machine.
	StopGrace time.Duration
	Owner     MachineOwner
}

// MachineOwner is whose machine it is; the platform keeps it as metadata.
type MachineOwner struct {
	Tenant, RunID string
	Attempt       int
}

// MachinePhase is how far a machine is.
type MachinePhase string

// The phases of a machine, in their order. A state that the adapter does not
// know is MachineUnknown, and proves nothing.
const (
	MachineUnknown  MachinePhase = "unknown"
	MachineCreating MachinePhase = "creating"
	MachineRunning  MachinePhase = "running"
	// MachineEnding: the program has ended or is being stopped; the machine is
	// not gone yet.
	MachineEnding MachinePhase = "ending"
	MachineGone   MachinePhase = "gone"
)

// Machine is what a platform tells about one.
type Machine struct {
	// ID finds the machine again, whichever app or cluster it is in. It is the
	// adapter's own and at most 200 characters.
	ID        string
	Name      string
	Region    string
	Phase     MachinePhase
	Owner     MachineOwner
	CreatedAt time.Time
	// Exit is set once the platform has told how the program ended; it can
	// stay nil for a machine that is gone.
	Exit *Exit
}

// Exit is how a machine's program ended.
type Exit struct {
	// Code is the exit code, 128+n for signal n.
	Code int
	// Signal is the signal's number, 0 where none ended it.
	Signal int
	// OOM: the kernel killed it for its memory.
	OOM bool
	// Requested: somebody asked the platform to stop the machine.
	Requested bool
	At        time.Time
}

// MachineLogs is a capability of a Runner: it reads the output of a machine's
// program.
type MachineLogs interface {
	// Logs returns what the program has written so far to its standard output and
	// error, in the order of the writes. The platform may have shortened it, and
	// then marks the cut. Logs works for a while after the machine is gone.
	// ErrNotFound if the platform does not know the machine or keeps no log.
	Logs(ctx context.Context, id string) ([]byte, error)
}
