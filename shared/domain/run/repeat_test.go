package run_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestDelayedEvaluationKeepsLaterEffects: an evaluation of an earlier state arrives while the
// completion of a token is pending. It proves nothing about the state that still waits for the
// token.
func TestDelayedEvaluationKeepsLaterEffects(t *testing.T) {
	t.Parallel()
	r, now := after(t, run.Admitted{Pool: "p", Limit: 1}, run.Evaluated{Generation: 1})
	waits := r.Wait.Generation
	for _, f := range []run.Fact{
		run.TokenStored{Step: run.StepContainerCreating, Generation: waits, Token: "T"}, run.MachineRunning{Attempt: 1},
	} {
		d, err := run.Decide(r, f, now)
		if err != nil {
			t.Fatal(err)
		}
		r = d.Run
	}
	completes := func(e run.Effect) bool { return e.Kind == run.EffectComplete && e.Token == "T" }
	for name, f := range map[string]run.Fact{
		"evaluation": run.Evaluated{Generation: waits - 1}, "failure": run.Abandoned{Generation: waits - 1},
	} {
		d, err := run.Decide(r, f, now.Add(time.Second))
		if err != nil || !slices.ContainsFunc(d.Run.Execution.Pending, completes) || d.Run.State != run.Running {
			t.Errorf("%s: got %s with pending effects %v, %v, want Running with the completion of the token", name, d.Run.State, d.Run.Execution.Pending, err)
		}
	}
	d, err := run.Decide(r, run.Evaluated{Generation: waits}, now.Add(time.Second))
	if err != nil || slices.ContainsFunc(d.Run.Execution.Pending, completes) {
		t.Errorf("evaluation of the state itself: got pending effects %v, %v, want none for its token", d.Run.Execution.Pending, err)
	}
}

// TestUnexpectedFailuresBeforeTheStartAreLimited repeats attempts that fail before their
// machine starts, until the run ends.
func TestUnexpectedFailuresBeforeTheStartAreLimited(t *testing.T) {
	t.Parallel()
	r, now := after(t, run.Admitted{Pool: "p", Limit: 1})
	for r.State != run.Failed {
		if r.Attempt.Number > r.Policy.Retry.MaxFurtherStarts+1 {
			t.Fatalf("got attempt %d, want at most %d", r.Attempt.Number, r.Policy.Retry.MaxFurtherStarts+1)
		}
		for _, f := range []run.Fact{run.Abandoned{Message: "unexpected"}, run.Settled{}, run.Due{}, run.Admitted{Pool: "p", Limit: 1}} {
			now = now.Add(time.Hour)
			d, err := run.Decide(r, f, now)
			if err != nil {
				t.Fatal(err)
			}
			r = d.Run
		}
	}
	if r.Fault.Code != fault.Internal {
		t.Errorf("got %s, want %s", r.Fault.Code, fault.Internal)
	}
}
