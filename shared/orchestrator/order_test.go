package orchestrator_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/run"
)

// TestRule1EffectsFollowTheirCommit: what comes later would mend an execution
// that was begun, or sent on, too early, so that no run's end shows it.
func TestRule1EffectsFollowTheirCommit(t *testing.T) {
	t.Parallel()
	h := setup(t)
	calls := 0
	h.calls.first = func(call, subject string) {
		runs, _, err := h.store.List(h.Context(), client.Tenant, orchestrator.Page{Limit: 10})
		h.ok(err)
		begun := slices.ContainsFunc(runs, func(r run.Run) bool {
			return subject == run.ExecutionName(r.Ref(), r.Execution.Start)
		})
		awaited := slices.ContainsFunc(runs, func(r run.Run) bool { return subject == r.Wait.Token })
		if call == "Start" && !begun {
			t.Errorf("execution %s is begun before that is committed", subject)
		}
		if (call == "Succeed" || call == "Fail") && awaited {
			t.Errorf("a token is completed before that is committed: %s", call)
		}
		calls++
	}
	task := h.post()
	h.ok(h.report(h.runner.last(), h.upload(h.runner.last(), "<out/>", 6)))
	h.step()
	h.stands(task, run.Completed)
	h.cancel(h.post())
	h.step()
	if calls < 6 {
		t.Errorf("only %d calls were looked at", calls)
	}
}

func TestRule6ASweepMendsThePoolsInUse(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.post()
	h.sweep()
	if !slices.Contains(h.store.mended, "default") {
		t.Errorf("the sweep has mended %q", h.store.mended)
	}
}

func TestRule10NothingIsAcceptedThatIsNotStored(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.post()
	h.store.down = true
	if _, _, err := h.service.Export(h.Context(), exportCall()); err == nil {
		t.Error("a run is accepted by a store that is down")
	}
	if _, err := h.service.Cancel(h.Context(), client, task, ""); err == nil {
		t.Error("a cancel is accepted by a store that is down")
	}
	if err := h.report(h.runner.last(), success()); fault.Of(err).Code != fault.Unavailable {
		t.Errorf("a report to a store that is down: %v", err)
	}
	h.store.down = false
	h.ok(h.report(h.runner.last(), success()))
	h.step()
	h.stands(task, run.Completed)
}

func TestRule11TheWorkerNeverSeesATaskToken(t *testing.T) {
	t.Parallel()
	h := setup(t)
	var tokens []string
	for _, step := range run.Steps() {
		h.before[step] = func(in orchestrator.StepInput) { tokens = append(tokens, in.Token) }
	}
	h.post()
	tokens = slices.DeleteFunc(tokens, func(token string) bool { return token == "" })
	if len(tokens) < 2 {
		t.Fatalf("only %d tokens were given", len(tokens))
	}
	for name, value := range h.runner.last().spec.Env {
		for _, token := range tokens {
			if strings.Contains(value, token) {
				t.Errorf("%s has a task token", name)
			}
		}
	}
}
