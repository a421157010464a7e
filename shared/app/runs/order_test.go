package runs_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/app/token"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestEffectsFollowTheirCommit records the order of commits and effects, because
// later steps would repair an early effect.
//
// Rule 1 of shared/README.md.
func TestEffectsFollowTheirCommit(t *testing.T) {
	t.Parallel()
	h := setup(t)
	calls := 0
	h.calls.first = func(call, subject string) {
		runs, _, err := h.store.List(h.Context(), client.Tenant, port.Page{Limit: 10})
		h.ok(err)
		begun := slices.ContainsFunc(runs, func(r run.Run) bool {
			return subject == run.ExecutionName(r.Ref(), r.Execution.Start)
		})
		awaited := slices.ContainsFunc(runs, func(r run.Run) bool { return subject == r.Wait.Token })
		if call == "Start" && !begun {
			t.Errorf("got a start of execution %s before its commit, want it after", subject)
		}
		if (call == "Succeed" || call == "Fail") && awaited {
			t.Errorf("got %s of a token before its commit, want it after", call)
		}
		calls++
	}
	task := h.post()
	h.ok(h.report(h.runner.last(), h.upload(h.runner.last(), "<out/>", 6)))
	h.step()
	h.wantState(task, run.Completed)
	h.cancel(h.post())
	h.step()
	if calls < 6 {
		t.Errorf("got %d calls, want at least 6", calls)
	}
}

// Rule 6 of shared/README.md.
func TestSweepReconcilesPools(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.post()
	h.sweep()
	if !slices.Contains(h.store.reconciled, "default") {
		t.Errorf("got reconciled pools %q, want default", h.store.reconciled)
	}
}

// Rule 10 of shared/README.md.
func TestUnstoredExportIsNotAccepted(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.post()
	w := h.worker(h.runner.last())
	h.ok(w.started(false))
	h.store.down = true
	if _, _, err := h.service.Export(h.Context(), exportCall()); err == nil {
		t.Error("got an accepted run from a store that is down, want an error")
	}
	if _, err := h.service.Cancel(h.Context(), client, task, ""); err == nil {
		t.Error("got an accepted cancel request from a store that is down, want an error")
	}
	if err := h.report(h.runner.last(), success()); fault.Of(err).Code != fault.Unavailable {
		t.Errorf("got %v for a report to a store that is down, want %s", err, fault.Unavailable)
	}
	if _, err := w.heartbeat(); fault.Of(err).Code != fault.Unavailable {
		t.Errorf("got %v for a heartbeat to a store that is down, want %s", err, fault.Unavailable)
	}
	if err := w.started(false); fault.Of(err).Code != fault.Unavailable {
		t.Errorf("got %v for a repeated start to a store that is down, want %s", err, fault.Unavailable)
	}
	h.store.down = false
	h.ok(h.report(h.runner.last(), success()))
	h.step()
	h.wantState(task, run.Completed)
}

// Rule 11 of shared/README.md.
func TestWorkerGetsNoTaskToken(t *testing.T) {
	t.Parallel()
	h := setup(t)
	var tokens []string
	for _, step := range run.Steps() {
		h.before[step] = func(in runs.StepInput) { tokens = append(tokens, in.Token) }
	}
	h.post()
	tokens = slices.DeleteFunc(tokens, func(token string) bool { return token == "" })
	if len(tokens) < 2 {
		t.Fatalf("got %d task tokens, want at least 2", len(tokens))
	}
	for name, value := range h.runner.last().spec.Env {
		for _, token := range tokens {
			if strings.Contains(value, token) {
				t.Errorf("got a task token in %s, want it absent", name)
			}
		}
	}
}

// TestEachAttemptHasItsOwnToken reads the tokens of two attempts in the envelope,
// in CALLBACK_URL and in a heartbeat's answer.
//
// Rule 11 of shared/README.md.
func TestEachAttemptHasItsOwnToken(t *testing.T) {
	t.Parallel()
	h := liveness(t, func(c *runs.Config) { c.Policy.TimeLimit = 5 * time.Hour })
	task := h.post()
	for attempt := 1; attempt <= 2; attempt++ {
		r := h.wantState(task, run.Running)
		want := token.Claims{TenantID: r.Tenant, WorkspaceID: r.Workspace, RunID: r.ID, TaskID: task, Attempt: attempt}
		w := h.worker(h.runner.last())
		if got := w.bearer().Claims; got != want {
			t.Errorf("got envelope token for %+v, want %+v", got, want)
		}
		address, err := url.Parse(w.m.spec.Env["CALLBACK_URL"])
		h.ok(err)
		callback, err := h.service.AuthenticateCallback(t.Context(), address.Query().Get("token"), task)
		if h.ok(err); callback.Claims != want {
			t.Errorf("got callback token for %+v, want %+v", callback.Claims, want)
		}
		bearer := w.bearer()
		w.sendHeartbeats(61*time.Minute, 30*time.Second)
		alive, err := h.service.Heartbeat(t.Context(), bearer, contract.TaskHeartbeat{Attempt: attempt, WorkerID: w.id})
		h.ok(err)
		renewed, err := h.service.Authenticate(t.Context(), alive.Renewed.Token, task)
		if h.ok(err); renewed.Claims != want || !renewed.ExpiresAt.After(bearer.ExpiresAt) {
			t.Errorf("got renewed token for %+v until %v, want %+v until after %v", renewed.Claims, renewed.ExpiresAt, want, bearer.ExpiresAt)
		}
		w.m.exit(1)
		h.sweep()
		h.advance(3 * time.Second)
	}
}
