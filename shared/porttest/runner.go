package porttest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// RunnerFault is a way in which a platform fails a launch.
type RunnerFault string

// The troubles that a harness can make.
const (
	// RunnerThrottles: too many requests; there is no machine.
	RunnerThrottles RunnerFault = "throttles"
	// RunnerIsFull: no room in any place; there is no machine.
	RunnerIsFull RunnerFault = "is full"
	// RunnerLosesRequest: there is no machine, and nobody says so.
	RunnerLosesRequest RunnerFault = "loses the request"
	// RunnerLosesAnswer: there is a machine, and nobody says so.
	RunnerLosesAnswer RunnerFault = "loses the answer"
)

// RunnerHarness is a platform without machines.
type RunnerHarness struct {
	// Runner is what is tested.
	Runner port.Runner
	// Image runs RunnerProgram. NoImage is one that the platform does not have.
	Image, NoImage string
	// UnknownID is of the adapter's shape, and no machine's.
	UnknownID string
	// Occupy makes a live machine of that name, in the place where the Runner
	// would make one, that is not Sortie's.
	Occupy func(t *testing.T, name string)
	// Trouble makes the next launch under the name fail in this way, once.
	Fault func(t *testing.T, name string, how RunnerFault)
}

// Runner is the conformance suite of port.Runner. setup
// is called once for each test.
func Runner(t *testing.T, setup func(t *testing.T) RunnerHarness) {
	t.Helper()
	tests := []struct {
		name string
		run  func(*testing.T, RunnerHarness)
	}{
		{"a machine is made, runs, is stopped and is gone", runnerLife},
		{"the exit code is told", runnerExitCode},
		{"a machine that has ended is beyond running", runnerQuick},
		{"a repeated launch adopts the machine", runnerAdopts},
		{"launches at once make one machine", runnerRace},
		{"a name that another machine has is refused", runnerForeign},
		{"a name is free when its machine is gone", runnerNameAgain},
		{"a stop kills when the grace is over", runnerStubborn},
		{"a destroy kills", runnerDestroys},
		{"stop and destroy may be repeated", runnerRepeats},
		{"what never was is not found", runnerUnknown},
		{"a wait ends with its limit", runnerWaitLimit},
		{"a list shows this Sortie's machines", runnerList},
		{"a throttled launch makes no machine", runnerThrottled},
		{"a launch without room makes no machine", runnerFull},
		{"an image that is not there is named", runnerNoImage},
		{"a machine that cannot be is refused", runnerRefuses},
		{"a lost request can be repeated", runnerLostRequest},
		{"a lost answer leaves one machine", runnerLostAnswer},
		{"an ended context is no answer", runnerContext},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, setup(t))
		})
	}
}

// patience is longer than anything here takes on the slowest machine.
const patience = time.Minute

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func (h RunnerHarness) spec(name, does string) port.LaunchSpec {
	return port.LaunchSpec{
		Name: name, Image: h.Image, CPUs: 1, MemoryMB: 256, StopGrace: 10 * time.Second,
		Env:   map[string]string{runnerDoes: does},
		Owner: port.MachineOwner{Tenant: "acme", RunID: "job:2025-01-01T00:00:00Z/" + name, Attempt: 2},
	}
}

// launch makes a machine, in spite of what may be lost.
func (h RunnerHarness) launch(t *testing.T, spec port.LaunchSpec) port.Machine {
	t.Helper()
	m, err := h.Runner.Launch(deadline(t), spec)
	if err != nil {
		t.Fatalf("cannot launch %s: %v", spec.Name, err)
	}
	if m.ID == "" || len(m.ID) > 200 || m.Name != spec.Name || m.Owner != spec.Owner {
		t.Fatalf("launched %+v for %+v", m, spec)
	}
	return m
}

func (h RunnerHarness) wait(t *testing.T, id string, phase port.MachinePhase) port.Machine {
	t.Helper()
	m, err := h.Runner.Wait(deadline(t), id, phase, 30*time.Second)
	if err != nil {
		t.Fatalf("cannot wait until %s is %s: %v", id, phase, err)
	}
	return m
}

// gone waits for the end and gives the exit, which has to be told here.
func (h RunnerHarness) gone(t *testing.T, id string) port.Exit {
	t.Helper()
	m := h.wait(t, id, port.MachineGone)
	if m.Phase != port.MachineGone || m.Exit == nil {
		t.Fatalf("%s is %s with exit %v, want it gone with one", m.Name, m.Phase, m.Exit)
	}
	if m.Exit.At.IsZero() || m.Exit.At.Before(m.CreatedAt.Truncate(time.Second)) {
		t.Errorf("%s ended at %v, created at %v", m.Name, m.Exit.At, m.CreatedAt)
	}
	if again, err := h.Runner.Inspect(deadline(t), id); err != nil || again.Phase != port.MachineGone || again.Exit == nil || *again.Exit != *m.Exit {
		t.Errorf("looked up again it is %+v, %v", again, err)
	}
	return *m.Exit
}

// listed gives the live machines of the name.
func (h RunnerHarness) listed(t *testing.T, name string) []port.Machine {
	t.Helper()
	all, err := h.Runner.List(deadline(t))
	if err != nil {
		t.Fatalf("cannot list: %v", err)
	}
	var found []port.Machine
	for _, m := range all {
		if m.Name == name {
			found = append(found, m)
		}
	}
	return found
}

func (h RunnerHarness) destroy(t *testing.T, id string) {
	t.Helper()
	if err := h.Runner.Destroy(deadline(t), id); err != nil {
		t.Errorf("cannot destroy %s: %v", id, err)
	}
}

func wantFault(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Errorf("err = %v, want %s", err, code)
	}
}

func wantNotFound(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, port.ErrNotFound) {
		t.Errorf("err = %v, want ErrNotFound", err)
	}
}
