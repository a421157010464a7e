package runs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// wantNothingDue fails the test if an effect of an ended run is not recorded as done.
func (h *fixture) wantNothingDue(task string) {
	h.Helper()
	due, _, err := h.store.Due(h.Context(), h.clock.now.AddDate(20, 0, 0), "", 10)
	h.ok(err)
	if r := h.record(task); len(due) != 0 || len(r.Execution.Pending) != 0 {
		h.Errorf("got %v due and %v pending, want no effects", due, r.Execution.Pending)
	}
}

// TestEffectIsRepeatedUntilDone loses each kind of effect, before and after it is
// applied, and lets the sweep repeat it.
//
// Rule 1 of shared/README.md.
func TestEffectIsRepeatedUntilDone(t *testing.T) {
	t.Parallel()
	const slack = 31 * time.Second
	for name, test := range map[string]struct {
		effect string
		play   func(h *fixture) (task string)
		want   run.State
	}{
		"start": {"Start", (*fixture).accept, run.Completed},
		"complete the start's token": {"Succeed", func(h *fixture) string {
			return h.post()
		}, run.Completed},
		"complete the worker's token": {"Succeed", func(h *fixture) string {
			h.calls.lostRequests, h.calls.lostAnswers = map[string]int{}, map[string]int{}
			return h.post()
		}, run.Completed},
		"fail the token of a cancelled run": {"Fail", func(h *fixture) string {
			task := h.post()
			_, err := h.service.Cancel(h.Context(), client, task, "")
			h.ok(err)
			return task
		}, run.Cancelled},
		"stop": {"Stop", func(h *fixture) string {
			task := h.post()
			h.runner.last().exit(1)
			h.sweep()
			h.wantState(task, run.Retrying)
			_, err := h.service.Cancel(h.Context(), client, task, "")
			h.ok(err)
			return task
		}, run.Cancelled},
	} {
		for _, loss := range []string{"lost request", "lost answer"} {
			t.Run(name+" "+loss, func(t *testing.T) {
				t.Parallel()
				h := setup(t)
				losses := map[string]int{test.effect: 1}
				if loss == "lost request" {
					h.calls.lostRequests = losses
				} else {
					h.calls.lostAnswers = losses
				}
				task := test.play(h)
				if name == "complete the worker's token" {
					h.wantState(task, run.Running)
					if loss == "lost request" {
						h.calls.lostRequests = losses
					} else {
						h.calls.lostAnswers = losses
					}
					h.ok(h.report(h.runner.last(), success()))
				}
				h.advance(slack)
				h.sweep()
				h.advance(time.Second)
				if r := h.record(task); r.State == run.Running {
					h.ok(h.report(h.runner.last(), success()))
					h.step()
				}
				h.wantState(task, test.want)
				h.advance(slack)
				h.sweep()
				h.wantNothingDue(task)
				if x := h.execution(task, 1); x.Status == port.ExecutionRunning {
					t.Error("got a running execution, want it ended")
				}
				if h.calls.lostRequests[test.effect]+h.calls.lostAnswers[test.effect] > 0 {
					t.Error("got no lost effect, want one")
				}
			})
		}
	}
}

// TestFactBeforeItsToken reports twice while the waiting state is entered, and
// once more an hour later.
//
// Rule 3 of shared/README.md.
func TestFactBeforeItsToken(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.before[run.StepRunning] = func(runs.StepInput) {
		h.ok(h.report(h.runner.last(), success()))
		h.ok(h.report(h.runner.last(), success()))
	}
	task := h.post()
	h.wantState(task, run.Completed)
	events := h.eventsOf(task)
	h.advance(time.Hour)
	h.ok(h.report(h.runner.last(), success()))
	const want = "accepted admitted machine_created started attempt_ended completed"
	if after := h.eventsOf(task); events != want || after != want {
		t.Errorf("got events %q, then %q, want %q", events, after, want)
	}
	h.wantNothingDue(task)
}

// TestNewestTokenWins stores the token of a state that was left: that token is
// completed, and the record keeps the current one.
//
// Rule 3 of shared/README.md.
func TestNewestTokenWins(t *testing.T) {
	t.Parallel()
	h := setup(t)
	var old runs.StepInput
	h.before[run.StepContainerCreating] = func(in runs.StepInput) { old = in }
	task := h.post()
	before := h.wantState(task, run.Running)
	made := len(h.runner.launched)
	old.Token = "a token of no wait"
	h.ok(h.service.Launch(h.Context(), old))
	if after := h.record(task); after.Version != before.Version || after.Wait != before.Wait || len(h.runner.launched) != made {
		t.Errorf("got wait %+v and %d machines, want %+v and %d", after.Wait, len(h.runner.launched), before.Wait, made)
	}
	h.ok(h.report(h.runner.last(), success()))
	h.step()
	h.wantState(task, run.Completed)
}

// TestOverdueExecutionIsChecked loses every start of an execution. Only overdue records are
// checked.
//
// Rule 13 of shared/README.md.
func TestOverdueExecutionIsChecked(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.calls.lostRequests["Start"] = 1
	task := h.post()
	h.advance(29 * time.Second)
	h.sweep()
	h.wantState(task, run.Pending)
	h.advance(2 * time.Second)
	h.sweep()
	h.wantState(task, run.Running)
	if h.record(task).Execution.Start != 1 {
		t.Errorf("got start %d, want 1", h.record(task).Execution.Start)
	}
}

// TestStartIsIdempotent loses the answer to a start and repeats it while the
// execution has not acted.
//
// Rule 13 of shared/README.md.
func TestStartIsIdempotent(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.calls.lostAnswers["Start"] = 1
	h.fail[run.StepPending] = slices.Repeat([]string{"TryAgain"}, 12)
	task := h.post()
	h.advance(31 * time.Second)
	if r := h.wantState(task, run.Pending); len(r.Execution.Pending) == 0 || h.calls.lostAnswers["Start"] != 0 {
		t.Fatalf("got pending effects %v, want the start after its answer was lost", r.Execution.Pending)
	}
	h.sweep()
	h.advance(10 * time.Minute)
	if r := h.record(task); r.Attempt.Number == 0 || r.Execution.Start != 1 {
		t.Errorf("got attempt %d of start %d in %s, want an attempt of start 1", r.Attempt.Number, r.Execution.Start, r.State)
	}
}

// TestMissingExecutionIsStarted removes the execution of a record without pending
// effects, as a restored backup does.
//
// Rule 13 of shared/README.md.
func TestMissingExecutionIsStarted(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.calls.lostRequests["Start"] = 1
	task := h.post()
	r := h.record(task)
	r.Execution.Pending = nil
	h.ok(h.store.Commit(h.Context(), port.Write{Run: r}))
	h.advance(31 * time.Second)
	h.sweep()
	h.wantState(task, run.Running)
}

// TestImmediateRunTakesEightTransitions counts as Step Functions bills: each state
// that is entered, and at most one for the end.
func TestImmediateRunTakesEightTransitions(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.post()
	h.ok(h.report(h.runner.last(), success()))
	h.step()
	h.wantState(task, run.Completed)
	if x := h.execution(task, 1); x.Transitions+1 > 8 || x.Transitions != len(h.entered) || x.Status != port.ExecutionSucceeded {
		t.Errorf("got %+v entering %v, want a success in at most 8 transitions", x, h.entered)
	}
}

// TestFailedEffectIsRepeatedEarly loses a start. The process knows that, and need not wait
// until the record is overdue.
func TestFailedEffectIsRepeatedEarly(t *testing.T) {
	t.Parallel()
	h := setup(t)
	if h.service.EffectFailed() {
		t.Error("got a failed effect before one failed")
	}
	h.calls.lostRequests["Start"] = 1
	task := h.post()
	h.wantState(task, run.Pending)
	if !h.service.EffectFailed() || h.service.EffectFailed() {
		t.Error("got no failed effect, or it twice, want it once")
	}
	h.ok(h.service.Sweep(h.Context(), run.EffectSlack))
	h.step()
	h.wantState(task, run.Running)
}
