package orchestrator_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/run"
)

// TestACallThatComesTwiceLeavesTheNextAttempt repeats calls of an attempt that is
// over, as Step Functions may after one that it gave up, while the next one runs.
func TestACallThatComesTwiceLeavesTheNextAttempt(t *testing.T) {
	t.Parallel()
	h := setup(t)
	var judging, terminating orchestrator.StepInput
	h.fail[run.StepRunning] = []string{"Lambda.Unknown"}
	h.before[run.StepJudging] = func(in orchestrator.StepInput) { judging = in }
	h.before[run.StepTerminating] = func(in orchestrator.StepInput) { terminating = in }
	task := h.post()
	h.pass(5 * time.Second)
	h.stands(task, run.Running)
	h.runner.last().ends(1)
	h.sweep()
	h.pass(5 * time.Second)
	before := h.stands(task, run.Running)
	if before.Attempt.Number != 2 || judging.ID == "" || terminating.ID == "" {
		t.Fatalf("attempt %d runs; judged by %+v, terminated by %+v", before.Attempt.Number, judging, terminating)
	}
	for name, call := range map[string]func() (run.Route, error){
		"Judging":     func() (run.Route, error) { return h.service.Judge(t.Context(), judging) },
		"Terminating": func() (run.Route, error) { return h.service.Terminate(t.Context(), terminating) },
	} {
		_, err := call()
		h.ok(err)
		if after := h.record(task); after.Version != before.Version {
			t.Errorf("%s changed the record: %s, %+v", name, after.State, after.Wait)
		}
	}
	h.ok(h.report(h.runner.last(), success()))
	h.step()
	h.stands(task, run.Completed)
}

// TestRule7AMachineThatJudgingCannotFindIsNotGone judges a start whose machine the
// platform does not show yet: it is waited for.
func TestRule7AMachineThatJudgingCannotFindIsNotGone(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runner.stuck = true
	task := h.post()
	h.stands(task, run.ContainerCreating)
	h.runner.last().hidden = true
	_, err := h.service.Judge(t.Context(), h.input(task, run.StepJudging))
	h.ok(err)
	if r := h.stands(task, run.ContainerCreating); r.Attempt.Number != 1 || r.Attempt.MachineID == "" {
		t.Errorf("the attempt is %+v", r.Attempt)
	}
}
