package runs_test

import (
	"errors"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestEffectsJoinTheirCommit keeps the executions in the store of the runs: each call is part
// of a commit, and the engine makes no further commits.
func TestEffectsJoinTheirCommit(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.calls.joins = true
	h.calls.first = func(call, subject string) { t.Errorf("got %s of %s, want it in a commit", call, subject) }
	before := h.db.Stats()
	task := h.post()
	h.ok(h.report(h.runner.last(), h.upload(h.runner.last(), "<out/>", 6)))
	h.step()
	h.wantState(task, run.Completed)
	if x, err := h.engine.Describe(t.Context(), run.ExecutionName(h.record(task).Ref(), 1)); x.Status != port.ExecutionSucceeded || err != nil {
		t.Errorf("got %+v, %v, want an execution that has succeeded", x, err)
	}
	const most = 8 // accepted, admitted, token, machine, started, token, completed, ended
	if commits := h.db.Stats().Commits - before.Commits; commits > most {
		t.Errorf("got %d commits for a run, want at most %d", commits, most)
	}
}

// TestRefusedCommitHasNoEffects checks that a failed commit starts no execution and completes
// no token.
func TestRefusedCommitHasNoEffects(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.calls.joins = true
	task := h.post()
	token := h.record(task).Wait.Token
	ending := h.upload(h.runner.last(), "<out/>", 6)
	h.store.down = true
	if _, _, err := h.service.Export(t.Context(), exportCall()); err == nil {
		t.Error("got an accepted run from a store that is down, want an error")
	}
	if err := h.report(h.runner.last(), ending); err == nil {
		t.Error("got an accepted report from a store that is down, want an error")
	}
	h.store.down = false
	if running := h.engine.Running(); running != 1 {
		t.Errorf("got %d executions, want that of the first run alone", running)
	}
	if err := h.engine.Heartbeat(t.Context(), token); errors.Is(err, port.ErrTokenGone) {
		t.Error("the token of a refused commit is gone, want it awaited")
	}
	h.ok(h.report(h.runner.last(), ending))
	if err := h.engine.Heartbeat(t.Context(), token); !errors.Is(err, port.ErrTokenGone) {
		t.Errorf("got %v, want the token completed by the commit", err)
	}
	h.step()
	h.wantState(task, run.Completed)
}
