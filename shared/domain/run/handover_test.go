package run_test

import (
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// decided applies a fact. It fails the test if the run does not change.
func decided(t *testing.T, r run.Run, f run.Fact) run.Run {
	t.Helper()
	d, err := run.Decide(r, f, epoch)
	if err != nil || !d.Changed {
		t.Fatalf("%T on %s: got change %t (%v), want one", f, r.State, d.Changed, err)
	}
	return d.Run
}

// TestHandOverIsNoRestart hands a run over and then loses executions. The first lost one must
// be replaced; the second must orphan the run.
func TestHandOverIsNoRestart(t *testing.T) {
	t.Parallel()
	r := decided(t, run.New(fresh(), epoch).Run, run.Admitted{Pool: "p"})
	over := run.HandedOver{Retries: run.MaxEvents}
	for range 3 {
		before := r.Execution.Start
		r = decided(t, r, over)
		if r.Execution.Start != before+1 || r.Execution.Events != 0 {
			t.Fatalf("got start %d with %d events after the hand-over, want %d with 0", r.Execution.Start, r.Execution.Events, before+1)
		}
	}
	r = decided(t, r, run.Restarted{Start: r.Execution.Start})
	if r.State != run.ContainerCreating {
		t.Errorf("got %s after the first lost execution, want %s", r.State, run.ContainerCreating)
	}
	r = decided(t, r, over)
	if r = decided(t, r, run.Restarted{Start: r.Execution.Start}); r.State != run.Orphaned {
		t.Errorf("got %s after the second lost execution, want %s", r.State, run.Orphaned)
	}
	if d, err := run.Decide(r, over, epoch); err != nil || d.Changed {
		t.Errorf("got change %t (%v) of a run that has ended, want none", d.Changed, err)
	}
}

// TestRepeatedCallHandsNothingOver repeats the call of an earlier state: the execution now
// waits in a later one.
func TestRepeatedCallHandsNothingOver(t *testing.T) {
	t.Parallel()
	r := decided(t, run.New(fresh(), epoch).Run, run.Admitted{Pool: "p"})
	r = decided(t, r, run.TokenStored{Step: run.StepContainerCreating, Generation: r.Wait.Generation, Token: "t"})
	over := run.HandedOver{Generation: r.Wait.Generation - 1, Retries: run.MaxEvents}
	if d, err := run.Decide(r, over, epoch); err != nil || d.Changed {
		t.Errorf("got change %t (%v), want none", d.Changed, err)
	}
	over.Generation++
	if d, err := run.Decide(r, over, epoch); err != nil || d.Run.Wait.Token != "" || d.Run.Execution.Start != 2 {
		t.Errorf("got token %q and start %d (%v), want none and 2", d.Run.Wait.Token, d.Run.Execution.Start, err)
	}
}
