package runs_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// partialRunner is a platform that does not answer about one of its machines.
type partialRunner struct {
	*runner
	about port.Machine
}

// Inspect implements port.Runner.
func (b partialRunner) Inspect(ctx context.Context, m port.Machine) (port.MachineStatus, error) {
	if m.Key() == b.about.Key() {
		return port.MachineStatus{}, fault.New(fault.Unavailable, "no answer about %s", m.ID)
	}
	return b.runner.Inspect(ctx, m)
}

// TestInspectionFailureSkipsOneMachine loses two machines, of which the first cannot be
// inspected.
//
// Rule 7 of shared/README.md.
func TestInspectionFailureSkipsOneMachine(t *testing.T) {
	t.Parallel()
	h := setup(t)
	first, second := h.post(), h.post()
	if second < first {
		t.Fatalf("got task %s before %s, want ascending IDs", second, first)
	}
	for _, m := range h.runner.launched {
		m.exit(1)
	}
	service := h.system(wiring{runner: partialRunner{h.runner, h.record(first).Attempt.Machine}})
	if err := service.Sweep(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("got %v, want the error of the machine without an answer", err)
	}
	h.wantState(first, run.Running)
	h.wantState(second, run.Terminating)
}

// emptyListRunner is a platform whose lists show nothing.
type emptyListRunner struct{ *runner }

// List implements port.Runner.
func (emptyListRunner) List(context.Context, func(port.MachineStatus) bool) error { return nil }

// TestUnlistedMachineKeepsRunning hides a machine from lists: an inspection
// shows it.
//
// Rule 7 of shared/README.md.
func TestUnlistedMachineKeepsRunning(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.post()
	service := h.system(wiring{runner: emptyListRunner{h.runner}})
	for range 5 {
		h.ok(service.Sweep(t.Context(), 0))
		h.wantState(task, run.Running)
		h.advance(time.Minute)
	}
	h.runner.last().exit(1)
	h.ok(service.Sweep(t.Context(), 0))
	if r := h.wantState(task, run.Terminating); r.Attempt.Exit == nil || r.Attempt.Exit.Code != 1 {
		t.Errorf("got exit %+v, want code 1", r.Attempt.Exit)
	}
}
