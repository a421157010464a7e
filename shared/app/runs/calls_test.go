package runs_test

import (
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestCallsOfARunAreCounted counts the platform calls of a run that ends by its report, and of
// one with a cancel request before the commit of its machine. That commit is decided again.
func TestCallsOfARunAreCounted(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(h *fixture) (task string){
		"success": func(h *fixture) string {
			task := h.post()
			if got := h.record(task).Tally.Calls[platform.RunnerFly]; got == 0 {
				h.Error("got no calls of a run with a machine")
			}
			h.succeed(task)
			return task
		},
		"lost commit": func(h *fixture) string {
			task := h.accept()
			_, err := h.service.Admit(h.Context(), h.input(task, run.StepPending))
			h.ok(err)
			other := &racingStore{}
			slow := h.raceWith(other)
			h.runner.during = func(*machine) error {
				other.first = func() { h.cancel(task) }
				return nil
			}
			in := h.input(task, run.StepContainerCreating)
			in.Generation, in.Token = h.record(task).Wait.Generation, "token"
			h.ok(slow.Launch(h.Context(), in))
			if other.first != nil {
				h.Fatal("got no lost race, want one")
			}
			_, err = h.service.Terminate(h.Context(), h.input(task, run.StepTerminating))
			h.ok(err)
			return task
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			r := h.record(play(h))
			if !r.State.Terminal() {
				t.Fatalf("got %s, want an end", r.State)
			}
			if got := r.Tally.Calls[platform.RunnerFly]; got != h.runner.calls || got < 2 {
				t.Errorf("got %d calls in the record, want the %d of the runner", got, h.runner.calls)
			}
		})
	}
}
