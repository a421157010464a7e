package porttest

import (
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

func runnerForeign(t *testing.T, h RunnerHarness) {
	h.Occupy(t, "r-foreign")
	_, err := h.Runner.Launch(deadline(t), h.spec("r-foreign", "rest"))
	wantFault(t, err, fault.LaunchRefused)

	spec := h.spec("r-mine", "rest")
	m := h.launch(t, spec)
	for name, change := range map[string]func(*port.MachineOwner){
		"attempt": func(o *port.MachineOwner) { o.Attempt++ },
		"run":     func(o *port.MachineOwner) { o.RunID += "x" },
		"tenant":  func(o *port.MachineOwner) { o.Tenant = "evil" },
	} {
		other := spec
		change(&other.Owner)
		if _, err := h.Runner.Launch(deadline(t), other); !fault.Is(err, fault.LaunchRefused) {
			t.Errorf("another %s: got error %v, want %s", name, err, fault.LaunchRefused)
		}
	}
	h.destroy(t, m.Machine)
}

func runnerList(t *testing.T, h RunnerHarness) {
	h.Occupy(t, "r-not-ours")
	ids := map[string]bool{}
	for _, name := range []string{"r-a", "r-b", "r-c", "r-d", "r-e"} {
		ids[h.launch(t, h.spec(name, "rest")).ID] = true
	}
	for _, m := range h.list(t) {
		if !ids[m.ID] {
			t.Errorf("got %+v listed, want own live machines only", m)
		}
		delete(ids, m.ID)
		h.destroy(t, m.Machine)
	}
	if len(ids) > 0 {
		t.Errorf("got a list without %v, want all live machines", ids)
	}
}

func runnerListStops(t *testing.T, h RunnerHarness) {
	for _, name := range []string{"r-a", "r-b", "r-c", "r-d", "r-e"} {
		h.launch(t, h.spec(name, "rest"))
	}
	calls := 0
	if err := h.Runner.List(deadline(t), func(port.MachineStatus) bool { calls++; return calls < 2 }); err != nil || calls != 2 {
		t.Errorf("got %d machines and error %v, want the list to stop after 2", calls, err)
	}
}

// runnerListPart requires that List reports a part of the platform that cannot be listed, and
// still returns the machines of the other parts. A machine of the failed part can be inspected.
func runnerListPart(t *testing.T, h RunnerHarness) {
	if h.FailPart == nil {
		return // the platform has no parts
	}
	var machines []port.MachineStatus
	for _, name := range []string{"r-a", "r-b", "r-c", "r-d", "r-e"} {
		machines = append(machines, h.launch(t, h.spec(name, "rest")))
	}
	h.FailPart(t, machines[0])
	var found []port.MachineStatus
	err := h.Runner.List(deadline(t), func(m port.MachineStatus) bool { found = append(found, m); return true })
	wantFault(t, err, fault.Unavailable)
	if len(found) == 0 || slices.ContainsFunc(found, func(m port.MachineStatus) bool { return m.ID == machines[0].ID }) {
		t.Errorf("got %d machines listed, want those of the other parts", len(found))
	}
	if m, err := h.Runner.Inspect(deadline(t), machines[0].Machine); err != nil || m.ID != machines[0].ID {
		t.Errorf("got %+v, %v for the machine that cannot be listed, want the machine", m, err)
	}
	for _, m := range machines {
		h.destroy(t, m.Machine)
	}
}

func runnerThrottled(t *testing.T, h RunnerHarness) {
	noMachine(t, h, "r-throttled", RunnerThrottles, fault.Throttled)
}

func runnerFull(t *testing.T, h RunnerHarness) {
	noMachine(t, h, "r-full", RunnerIsFull, fault.Capacity)
}

// noMachine launches a machine with a fault that creates no machine, and then launches it
// again.
func noMachine(t *testing.T, h RunnerHarness, name string, injected RunnerFault, code fault.Code) {
	t.Helper()
	h.Fault(t, name, injected)
	spec := h.spec(name, "rest")
	_, err := h.Runner.Launch(deadline(t), spec)
	wantFault(t, err, code)
	if found := h.listed(t, name); len(found) != 0 {
		t.Errorf("got %+v listed, want no machine", found)
	}
	h.destroy(t, h.launch(t, spec).Machine)
}

func runnerNoImage(t *testing.T, h RunnerHarness) {
	spec := h.spec("r-no-image", "rest")
	spec.Image = h.NoImage
	_, err := h.Runner.Launch(deadline(t), spec)
	wantFault(t, err, fault.Image)
}

func runnerJammed(t *testing.T, h RunnerHarness) {
	if h.Jam == nil {
		return // the image problem does not occur, or the launch fails
	}
	h.Jam(t, "jammed")
	m := h.launch(t, h.spec("jammed", "rest"))
	inspected, err := h.Runner.Inspect(deadline(t), h.wait(t, m.Machine, port.MachineRunning).Machine)
	if err != nil || inspected.StartFault == nil || inspected.StartFault.Code != fault.Image || inspected.Phase == port.MachineRunning || inspected.Exit != nil {
		t.Errorf("got %+v and %v, want a machine that has not started, with an IMAGE fault", inspected, err)
	}
	h.destroy(t, m.Machine)
	if gone := h.wait(t, m.Machine, port.MachineGone); gone.Phase != port.MachineGone {
		t.Errorf("got phase %s after the machine was destroyed, want %s", gone.Phase, port.MachineGone)
	}
}

func runnerInvalidSpec(t *testing.T, h RunnerHarness) {
	for name, change := range map[string]func(*port.LaunchSpec){
		"no name":      func(s *port.LaunchSpec) { s.Name = "" },
		"bad name":     func(s *port.LaunchSpec) { s.Name = "R a" },
		"long name":    func(s *port.LaunchSpec) { s.Name = strings.Repeat("r", 64) },
		"no image":     func(s *port.LaunchSpec) { s.Image = "" },
		"invalid size": func(s *port.LaunchSpec) { s.MemoryMB = 300 },
		"invalid id":   func(s *port.LaunchSpec) { s.Owner.RunID = "a\nb" },
	} {
		spec := h.spec("r-impossible", "rest")
		change(&spec)
		if _, err := h.Runner.Launch(deadline(t), spec); !fault.Is(err, fault.LaunchRefused) {
			t.Errorf("%s: got error %v, want %s", name, err, fault.LaunchRefused)
		}
	}
	if found := h.listed(t, "r-impossible"); len(found) != 0 {
		t.Errorf("got %+v listed, want no machine", found)
	}
}

func runnerLostRequest(t *testing.T, h RunnerHarness) {
	noMachine(t, h, "r-lost-request", RunnerLosesRequest, fault.Unavailable)
}

func runnerLostAnswer(t *testing.T, h RunnerHarness) {
	ready := newListener(t)
	spec := ready.with(h.spec("r-lost-answer", "rest"), "once")
	h.Fault(t, spec.Name, RunnerLosesAnswer)
	first, err := h.Runner.Launch(deadline(t), spec)
	if err != nil {
		wantFault(t, err, fault.Unavailable)
		first = h.launch(t, spec)
	}
	ready.receive()
	if again := h.launch(t, spec); again.ID != first.ID {
		t.Errorf("got machines %s and %s, want one machine", first.ID, again.ID)
	}
	if found := h.listed(t, spec.Name); len(found) != 1 || found[0].ID != first.ID {
		t.Errorf("got %+v listed, want only %s", found, first.ID)
	}
	h.destroy(t, first.Machine)
}
