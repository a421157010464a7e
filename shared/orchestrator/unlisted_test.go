package orchestrator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// blind is a platform that does not answer about one of its machines.
type blind struct {
	*runner
	about string
}

// Inspect implements port.Runner.
func (b blind) Inspect(ctx context.Context, id string) (port.Machine, error) {
	if id == b.about {
		return port.Machine{}, fault.New(fault.Unavailable, "no answer about %s", id)
	}
	return b.runner.Inspect(ctx, id)
}

// TestUnknownMachineHidesNoOther loses two machines, of which the first cannot be
// inspected.
//
// Rule 7 of shared/README.md.
func TestUnknownMachineHidesNoOther(t *testing.T) {
	t.Parallel()
	h := setup(t)
	first, second := h.post(), h.post()
	if second < first {
		t.Fatalf("got task %s before %s, want ascending IDs", second, first)
	}
	for _, m := range h.runner.made {
		m.ends(1)
	}
	service := h.system(wiring{runner: blind{h.runner, h.record(first).Attempt.MachineID}})
	if err := service.Sweep(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("got %v, want the error of the machine without an answer", err)
	}
	h.wantState(first, run.Running)
	h.wantState(second, run.Terminating)
}

// unlisting is a platform whose lists show nothing.
type unlisting struct{ *runner }

// List implements port.Runner.
func (unlisting) List(context.Context) ([]port.Machine, error) { return nil, nil }

// TestAbsenceFromAListProvesNothing hides a machine from lists: an inspection
// shows it.
//
// Rule 7 of shared/README.md.
func TestAbsenceFromAListProvesNothing(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.post()
	service := h.system(wiring{runner: unlisting{h.runner}})
	for range 5 {
		h.ok(service.Sweep(t.Context(), 0))
		h.wantState(task, run.Running)
		h.pass(time.Minute)
	}
	h.runner.last().ends(1)
	h.ok(service.Sweep(t.Context(), 0))
	if r := h.wantState(task, run.Terminating); r.Attempt.Exit == nil || r.Attempt.Exit.Code != 1 {
		t.Errorf("got exit %+v, want code 1", r.Attempt.Exit)
	}
}
