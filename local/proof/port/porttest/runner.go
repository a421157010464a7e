package porttest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// RunnerFault is a way in which a launch fails on a platform.
type RunnerFault string

// The faults that a harness can inject.
const (
	// RunnerThrottles: too many requests. No machine is created.
	RunnerThrottles RunnerFault = "throttles"
	// RunnerIsFull: no region has capacity. No machine is created.
	RunnerIsFull RunnerFault = "is full"
	// RunnerLosesRequest: the call fails without a response, and no machine is created.
	RunnerLosesRequest RunnerFault = "loses the request"
	// RunnerLosesAnswer: the call fails without a response, but a machine is created.
	RunnerLosesAnswer RunnerFault = "loses the answer"
)

// RunnerHarness is a platform without machines.
type RunnerHarness struct {
	// Runner is the adapter under test.
	Runner port.Runner
	// Image runs RunnerProgram. NoImage is an image that does not exist on the platform.
	Image, NoImage string
	// Unknown has the adapter's format but does not exist.
	Unknown port.Machine
	// Occupy creates a live machine with the name that does not belong to Sortie, in the region
	// in which the Runner would create a machine.
	Occupy func(t *testing.T, name string)
	// Fault makes the next launch with the name fail in this way.
	Fault func(t *testing.T, name string, how RunnerFault)
	// Jam makes the machine of the next launch with the name never start because of its image.
	// It is nil for a platform on which the launch itself fails then.
	Jam func(t *testing.T, name string)
	// FailPart makes List fail for the part of the platform with the machine. It is nil for a
	// platform without parts.
	FailPart func(t *testing.T, m port.MachineStatus)
	// KeepsGrace is true if a stopping machine keeps the grace period of the first Stop.
	// Destroy then ends the machine only after that period.
	KeepsGrace bool
}

// Runner is the conformance suite of port.Runner. setup is called once for each test.
func Runner(t *testing.T, setup func(t *testing.T) RunnerHarness) {
	t.Helper()
	tests := []struct {
		name string
		run  func(*testing.T, RunnerHarness)
	}{
		{"launch, stop and inspect a machine", runnerStop},
		{"exit code", runnerExitCode},
		{"wait for running returns a gone machine", runnerWaitGone},
		{"repeated launch adopts the machine", runnerAdopts},
		{"concurrent launches create one machine", runnerRace},
		{"name of another machine", runnerForeign},
		{"name is free after its machine is gone", runnerNameReused},
		{"stop kills after the grace period", runnerGrace},
		{"destroy kills", runnerDestroy},
		{"stop and destroy are idempotent", runnerIdempotent},
		{"unknown machine", runnerUnknown},
		{"wait times out", runnerWaitLimit},
		{"list returns own machines", runnerList},
		{"list stops on request", runnerListStops},
		{"list reports a part that fails", runnerListPart},
		{"throttled launch", runnerThrottled},
		{"launch without capacity", runnerFull},
		{"missing image", runnerNoImage},
		{"machine that does not start", runnerJammed},
		{"invalid specification", runnerInvalidSpec},
		{"lost request", runnerLostRequest},
		{"lost answer", runnerLostAnswer},
		{"ended context", runnerContext},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, setup(t))
		})
	}
}

// patience is longer than every call takes, even on the slowest test machine.
const patience = time.Minute

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func (h RunnerHarness) spec(name, does string) port.LaunchSpec {
	return port.LaunchSpec{
		Name: name, Image: h.Image, CPUs: 1, MemoryMB: 256, StopGrace: 10 * time.Second,
		Env:   map[string]string{envDoes: does},
		Owner: port.MachineOwner{Tenant: "acme", RunID: "job:2025-01-01T00:00:00Z/" + name, Attempt: 2},
	}
}

// launch creates a machine. It fails the test on an error.
func (h RunnerHarness) launch(t *testing.T, spec port.LaunchSpec) port.MachineStatus {
	t.Helper()
	m, err := h.Runner.Launch(deadline(t), spec)
	if err != nil {
		t.Fatalf("cannot launch %s: %v", spec.Name, err)
	}
	if m.ID == "" || len(m.ID) > 200 || m.Runner == "" || m.Name != spec.Name || m.Owner != spec.Owner {
		t.Fatalf("got %+v, want a machine of %+v", m, spec)
	}
	return m
}

func (h RunnerHarness) wait(t *testing.T, at port.Machine, phase port.MachinePhase) port.MachineStatus {
	t.Helper()
	m, err := h.Runner.Wait(deadline(t), at, phase, 30*time.Second)
	if err != nil {
		t.Fatalf("cannot wait until %s is %s: %v", at.ID, phase, err)
	}
	return m
}

// gone waits until the machine is gone and returns its exit. It fails the test if the exit is
// not known.
func (h RunnerHarness) gone(t *testing.T, at port.Machine) port.Exit {
	t.Helper()
	m := h.wait(t, at, port.MachineGone)
	if m.Phase != port.MachineGone || m.Exit == nil {
		t.Fatalf("%s: got phase %s with exit %v, want gone with an exit", m.Name, m.Phase, m.Exit)
	}
	if m.Exit.At.IsZero() || m.Exit.At.Before(m.CreatedAt.Truncate(time.Second)) {
		t.Errorf("%s: got exit at %v, want after its creation at %v", m.Name, m.Exit.At, m.CreatedAt)
	}
	if again, err := h.Runner.Inspect(deadline(t), at); err != nil || again.Phase != port.MachineGone || again.Exit == nil || *again.Exit != *m.Exit {
		t.Errorf("second Inspect: got %+v, %v; want the same", again, err)
	}
	return *m.Exit
}

// listed returns the live machines with the name.
func (h RunnerHarness) listed(t *testing.T, name string) []port.MachineStatus {
	t.Helper()
	var found []port.MachineStatus
	for _, m := range h.list(t) {
		if m.Name == name {
			found = append(found, m)
		}
	}
	return found
}

// list returns all machines.
func (h RunnerHarness) list(t *testing.T) (all []port.MachineStatus) {
	t.Helper()
	if err := h.Runner.List(deadline(t), func(m port.MachineStatus) bool { all = append(all, m); return true }); err != nil {
		t.Fatalf("cannot list: %v", err)
	}
	return all
}

func (h RunnerHarness) destroy(t *testing.T, at port.Machine) {
	t.Helper()
	if err := h.Runner.Destroy(deadline(t), at); err != nil {
		t.Errorf("cannot destroy %s: %v", at.ID, err)
	}
}

func wantFault(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Errorf("got error %v, want %s", err, code)
	}
}

func wantNotFound(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, port.ErrNotFound) {
		t.Errorf("got error %v, want ErrNotFound", err)
	}
}
