package orchestrator_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/run"
)

// blind is a platform that does not answer about one of its machines.
type blind struct {
	*runner
	about string
}

// Inspect is orchestrator.Runner.
func (b blind) Inspect(ctx context.Context, id string) (orchestrator.Machine, error) {
	if id == b.about {
		return orchestrator.Machine{}, fault.New(fault.Unavailable, "nobody answers about %s", id)
	}
	return b.runner.Inspect(ctx, id)
}

// TestOneMachineThatCannotBeLookedUpHidesNoOther loses two machines, of which
// the platform will not tell about the first.
func TestOneMachineThatCannotBeLookedUpHidesNoOther(t *testing.T) {
	t.Parallel()
	h := setup(t)
	first, second := h.post(), h.post()
	if second < first {
		t.Fatalf("%s comes before %s", second, first)
	}
	for _, m := range h.runner.made {
		m.ends(1)
	}
	service := orchestrator.New(orchestrator.Ports{
		Store: h.store, Executions: h.calls, Runner: blind{h.runner, h.record(first).Attempt.MachineID},
		Outputs: h.outputs, Clock: h.clock, Log: slog.New(slog.DiscardHandler),
	}, h.config)
	if err := service.Sweep(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "nobody answers") {
		t.Errorf("the sweep tells %v", err)
	}
	h.stands(first, run.Running)
	h.stands(second, run.Terminating)
}
