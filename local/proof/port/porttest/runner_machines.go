package porttest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

func runnerStop(t *testing.T, h RunnerHarness) {
	ready := newListener(t)
	m := h.launch(t, ready.with(h.spec("r-life-a2", "rest"), "hello from the machine"))
	if got := ready.receive(); got != "hello from the machine" {
		t.Errorf("got %q from the program, want its environment variable", got)
	}
	if m = h.wait(t, m.Machine, port.MachineRunning); m.Phase != port.MachineRunning || m.Exit != nil {
		t.Errorf("got %s with exit %v, want running", m.Phase, m.Exit)
	}
	if m.CreatedAt.IsZero() || m.CreatedAt.Location() != time.UTC {
		t.Errorf("got creation time %v, want one in UTC", m.CreatedAt)
	}
	if found := h.listed(t, m.Name); len(found) != 1 || found[0].Machine != m.Machine || found[0].Owner != m.Owner {
		t.Errorf("got %+v listed, want the machine", found)
	}
	if err := h.Runner.Stop(deadline(t), m.Machine, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if exit := h.gone(t, m.Machine); exit.Code != 0 || exit.Signal != 0 || !exit.Requested || exit.OOM {
		t.Errorf("got exit %+v, want 0, requested", exit)
	}
	if found := h.listed(t, m.Name); len(found) != 0 {
		t.Errorf("got %+v listed, want no machine", found)
	}
}

func runnerExitCode(t *testing.T, h RunnerHarness) {
	for name, does := range map[string]struct {
		does string
		code int
	}{"r-zero": {"exit 0", 0}, "r-one": {"exit 1", 1}, "r-many": {"exit 93", 93}, "r-137": {"exit 137", 137}} {
		m := h.launch(t, h.spec(name, does.does))
		if exit := h.gone(t, m.Machine); exit.Code != does.code || exit.Signal != 0 || exit.Requested || exit.OOM {
			t.Errorf("%s: got exit %+v, want code %d", does.does, exit, does.code)
		}
	}
}

func runnerWaitGone(t *testing.T, h RunnerHarness) {
	m := h.launch(t, h.spec("r-quick", "exit 0"))
	h.gone(t, m.Machine)
	if m := h.wait(t, m.Machine, port.MachineRunning); m.Phase != port.MachineGone {
		t.Errorf("got phase %s, want gone", m.Phase)
	}
}

func runnerAdopts(t *testing.T, h RunnerHarness) {
	spec := h.spec("r-again", "rest")
	first := h.launch(t, spec)
	second := h.launch(t, spec)
	h.wait(t, first.Machine, port.MachineRunning)
	third := h.launch(t, spec)
	if second.ID != first.ID || third.ID != first.ID {
		t.Errorf("got machines %s, %s and %s, want one machine", first.ID, second.ID, third.ID)
	}
	if third.Phase != port.MachineRunning {
		t.Errorf("got adopted machine in phase %s, want running", third.Phase)
	}
	h.destroy(t, first.Machine)
}

func runnerRace(t *testing.T, h RunnerHarness) {
	spec := h.spec("r-race", "rest")
	ids := make([]string, 8)
	var group sync.WaitGroup
	for i := range ids {
		group.Go(func() {
			m, err := h.Runner.Launch(deadline(t), spec)
			if err == nil {
				ids[i] = m.ID
			} else if !fault.Is(err, fault.Unavailable) {
				t.Errorf("got error %v, want success or Unavailable", err)
			}
		})
	}
	group.Wait()
	want := h.launch(t, spec).Machine
	for _, id := range ids {
		if id != "" && id != want.ID {
			t.Errorf("got machine %s, want %s", id, want.ID)
		}
	}
	if found := h.listed(t, spec.Name); len(found) != 1 {
		t.Errorf("got %d machines listed, want 1", len(found))
	}
	h.destroy(t, want)
}

func runnerNameReused(t *testing.T, h RunnerHarness) {
	spec := h.spec("r-name", "rest")
	first := h.launch(t, spec)
	h.destroy(t, first.Machine)
	h.wait(t, first.Machine, port.MachineGone)
	second := h.launch(t, spec)
	if second.ID == first.ID {
		t.Errorf("got %+v, which is gone, want a new machine", second)
	}
	h.destroy(t, second.Machine)
}

func runnerGrace(t *testing.T, h RunnerHarness) {
	ready := newListener(t)
	m := h.launch(t, ready.with(h.spec("r-stubborn", "ignore"), "up"))
	ready.receive()
	h.wait(t, m.Machine, port.MachineRunning)
	if err := h.Runner.Stop(deadline(t), m.Machine, 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if exit := h.gone(t, m.Machine); exit.Code != 137 || exit.Signal != 9 || !exit.Requested {
		t.Errorf("got exit %+v, want SIGKILL, requested", exit)
	}
}

func runnerDestroy(t *testing.T, h RunnerHarness) {
	ready := newListener(t)
	m := h.launch(t, ready.with(h.spec("r-destroyed", "ignore"), "up"))
	ready.receive()
	h.wait(t, m.Machine, port.MachineRunning)
	h.destroy(t, m.Machine)
	if exit := h.gone(t, m.Machine); exit.Signal != 9 || !exit.Requested {
		t.Errorf("got exit %+v, want SIGKILL, requested", exit)
	}
}

func runnerIdempotent(t *testing.T, h RunnerHarness) {
	ready := newListener(t)
	m := h.launch(t, ready.with(h.spec("r-twice", "ignore"), "up"))
	ready.receive()
	h.wait(t, m.Machine, port.MachineRunning)
	grace := time.Minute
	if h.KeepsGrace {
		grace = 3 * time.Second
	}
	stop := func(at port.Machine) {
		t.Helper()
		if err := h.Runner.Stop(deadline(t), at, grace); err != nil {
			t.Errorf("cannot stop %s: %v", at.ID, err)
		}
	}
	stop(m.Machine)
	stop(m.Machine)
	h.destroy(t, m.Machine)
	h.destroy(t, m.Machine)
	h.gone(t, m.Machine)
	malformed := m.Machine
	malformed.ID = "no machine's id"
	for _, at := range []port.Machine{m.Machine, h.Unknown, malformed} {
		stop(at)
		h.destroy(t, at)
	}
}

func runnerWaitLimit(t *testing.T, h RunnerHarness) {
	m := h.launch(t, h.spec("r-patient", "rest"))
	h.wait(t, m.Machine, port.MachineRunning)
	got, err := h.Runner.Wait(deadline(t), m.Machine, port.MachineGone, time.Second)
	if err != nil || got.Phase != port.MachineRunning || got.ID != m.ID {
		t.Errorf("got %+v, %v; want a running machine", got, err)
	}
	h.destroy(t, m.Machine)
}

func runnerUnknown(t *testing.T, h RunnerHarness) {
	malformed := h.Unknown
	malformed.ID = "no machine's id"
	for _, at := range []port.Machine{h.Unknown, malformed, {}} {
		_, err := h.Runner.Inspect(deadline(t), at)
		wantNotFound(t, err)
		_, err = h.Runner.Wait(deadline(t), at, port.MachineGone, time.Second)
		wantNotFound(t, err)
	}
}

func runnerContext(t *testing.T, h RunnerHarness) {
	m := h.launch(t, h.spec("r-context", "rest"))
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	_, err := h.Runner.Launch(ctx, h.spec("r-late", "rest"))
	wantFault(t, err, fault.Unavailable)
	_, err = h.Runner.Inspect(ctx, m.Machine)
	wantFault(t, err, fault.Unavailable)
	_, err = h.Runner.Wait(ctx, m.Machine, port.MachineGone, time.Second)
	wantFault(t, err, fault.Unavailable)
	wantFault(t, h.Runner.List(ctx, func(port.MachineStatus) bool { return true }), fault.Unavailable)
	wantFault(t, h.Runner.Stop(ctx, m.Machine, time.Second), fault.Unavailable)
	wantFault(t, h.Runner.Destroy(ctx, m.Machine), fault.Unavailable)
	h.destroy(t, m.Machine)
}
