package run_test

import (
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestPlacementIsFixedByTheFirstCall changes the placement of the pool between two create
// calls.
func TestPlacementIsFixedByTheFirstCall(t *testing.T) {
	t.Parallel()
	store := func(r run.Run, runner, token string) run.Run {
		return decided(t, r, run.TokenStored{
			Step: run.StepContainerCreating, Generation: r.Wait.Generation, Token: token, Placement: platform.Placement{Runner: runner},
		})
	}
	want := func(when string, r run.Run, runner string) {
		t.Helper()
		if got := r.Attempt.Place().Runner; got != runner {
			t.Errorf("%s: got runner %q, want %q", when, got, runner)
		}
	}
	r, _ := after(t, run.Admitted{Pool: "default"})
	creating := r
	r = store(r, "fly", "a")
	want("first call", r, "fly")
	r = store(r, "process", "b")
	want("call while another may be in flight", r, "fly")
	refused := decided(t, r, run.StartRefused{Attempt: 1, Fault: fault.New(fault.Capacity, "full")})
	want("call after one without an answer", store(refused, "process", "c"), "fly")

	r = store(creating, "fly", "a")
	r = decided(t, r, run.StartRefused{Attempt: 1, Fault: fault.New(fault.Capacity, "full")})
	want("call after a refusal", store(r, "process", "b"), "process")
}
