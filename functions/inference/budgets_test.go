package inference_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestBudgetHeaders reads the headers of the response to a task, to a known key, and at the
// start of a stream.
func TestBudgetHeaders(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	const task = `{"model_ref":"mock","prompt":"abcd","max_tokens":9,"deadline_ms":5000,"session_id":"s"}`
	want := func(header http.Header, tokens, ms, cost string) {
		t.Helper()
		got := []string{header.Get("X-Budget-Tokens-Remaining"), header.Get("X-Budget-Time-Remaining-Ms"), header.Get("X-Budget-Cost-Remaining")}
		if diff := cmp.Diff([]string{tokens, ms, cost}, got); diff != "" {
			t.Errorf("got other budget headers (+):\n%s", diff)
		}
	}
	accepted, header := apitest.Decoded[contract.TaskAccepted](t, stage, "POST", "/v1/tasks", task, 202, "Idempotency-Key", "k")
	want(header, "", "", "") // no limit
	_, _ = apitest.Decoded[contract.Budget](t, stage, "PUT", "/v1/budgets/tenant", `{"tokens":30}`, 200)
	_, header = apitest.Decoded[contract.TaskAccepted](t, stage, "POST", "/v1/tasks", task, 200, "Idempotency-Key", "k")
	want(header, "20", "", "")
	_, _ = apitest.Decoded[contract.Budget](t, stage, "PUT", "/v1/budgets/tenant", `{"tokens":30,"cost_nanodollars":50000}`, 200)
	_, _ = apitest.Decoded[contract.Budget](t, stage, "PUT", "/v1/budgets/session:s", `{"tokens":25,"time_ms":8000}`, 200)
	_, header = apitest.Decoded[contract.TaskAccepted](t, stage, "POST", "/v1/tasks", task, 200, "Idempotency-Key", "k")
	want(header, "15", "3000", "0.000032") // of 10 tokens, 5000 ms and 9 times $0.000002 that are held
	stream := stage.Call(t, "HEAD", "/v1/tasks/"+accepted.TaskID+"/stream", "")
	want(stream.Header, "15", "3000", "0.000032")
}

// TestRefusalsOfBudgets exhausts a budget and the turns of a session, and deletes one.
func TestRefusalsOfBudgets(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	refused := func(body string, status int, code, policy string) {
		t.Helper()
		p, header := apitest.Decoded[contract.Problem](t, stage, "POST", "/v1/tasks", body, status)
		if p.Code != code || p.PolicyLabel != policy || (status == 429) != (p.Retriable != nil && !*p.Retriable) || p.Retryable || header.Get("X-Should-Retry") != "false" || (status == 429) != (header.Get("Retry-After") == "60") {
			t.Errorf("got %+v with %v, want %s that is not retriable", p, header, code)
		}
	}
	_, _ = apitest.Decoded[contract.Budget](t, stage, "PUT", "/v1/budgets/tenant", `{"tokens":20}`, 200)
	refused(`{"model_ref":"mock","prompt":"abcd","max_tokens":20,"session_id":"s"}`, 429, "ADMISSION_REJECT", "budget")
	if p, _ := apitest.Decoded[contract.Problem](t, stage, "GET", "/v1/sessions/s", "", 404); p.Code != "NOT_FOUND" {
		t.Errorf("got %+v for a session without a task", p)
	}
	const task = `{"model_ref":"mock","prompt":"abcd","max_tokens":9,"session_id":"s"}`
	_, _ = apitest.Decoded[contract.TaskAccepted](t, stage, "POST", "/v1/tasks", task, 202)
	_, _ = apitest.Decoded[contract.Budget](t, stage, "PUT", "/v1/budgets/session:s", `{"turns":1}`, 200)
	refused(task, 409, "SESSION_CLOSED", "")
	_, _ = apitest.Decoded[contract.Budget](t, stage, "PUT", "/v1/budgets/session:s", `{}`, 200)
	if answer := stage.Call(t, "DELETE", "/v1/sessions/s", ""); answer.Status != http.StatusNoContent {
		t.Errorf("got %d %s, want 204", answer.Status, answer.Body)
	}
	refused(task, 409, "SESSION_CLOSED", "")
	for _, method := range []string{"GET", "DELETE"} {
		if answer := stage.Call(t, method, "/v1/sessions/s", ""); answer.Status != http.StatusNotFound {
			t.Errorf("%s: got %d of a deleted session, want 404", method, answer.Status)
		}
	}
}

func TestSessionAndBudgetsAreShown(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	_, _ = apitest.Decoded[contract.TaskAccepted](t, stage, "POST", "/v1/tasks", `{"model_ref":"mock","prompt":"abcd","max_tokens":9,"deadline_ms":5000,"session_id":"s"}`, 202)
	stage.Clock.Advance(10 * time.Second)
	session, _ := apitest.Decoded[contract.Session](t, stage, "GET", "/v1/sessions/s", "", 200)
	if diff := cmp.Diff(contract.Session{
		SessionID: "s", TTLMS: 590_000, Turns: 1, TurnsRemaining: new(int64(7)),
	}, session); diff != "" {
		t.Errorf("got another session (+):\n%s", diff)
	}
	n := func(n int64) *int64 { return &n }
	held := contract.BudgetUse{Turns: 1, Tokens: 10, TimeMS: 5000, CostNano: 18_000}
	for path, want := range map[string]contract.Budget{
		"session:s":    {Scope: "session:s", Held: held, Limit: contract.BudgetLimit{Turns: n(8)}, Remaining: contract.BudgetLimit{Turns: n(7)}},
		"project:main": {Scope: "project:main", Held: held},
		"tenant":       {Scope: "tenant", Held: held},
	} {
		got, _ := apitest.Decoded[contract.Budget](t, stage, "GET", "/v1/budgets/"+path, "", 200)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("got another budget (+):\n%s", diff)
		}
	}
	changed, _ := apitest.Decoded[contract.Budget](t, stage, "PUT", "/v1/budgets/tenant", `{"cost_nanodollars":20000,"tokens":4}`, 200)
	if diff := cmp.Diff(contract.Budget{
		Scope: "tenant", Held: held, Limit: contract.BudgetLimit{Tokens: n(4), CostNano: n(20_000)}, Remaining: contract.BudgetLimit{Tokens: n(0), CostNano: n(2000)}, Version: 1,
	}, changed); diff != "" {
		t.Errorf("got another budget (+):\n%s", diff)
	}
	if p, _ := apitest.Decoded[contract.Problem](t, stage, "PUT", "/v1/budgets/tenant", `{"time_ms":-1}`, 400); p.Field != "time_ms" {
		t.Errorf("got %+v, want the field time_ms", p)
	}
	for _, path := range []string{"other", "project:"} {
		if p, _ := apitest.Decoded[contract.Problem](t, stage, "GET", "/v1/budgets/"+path, "", 400); p.Field != "scope" {
			t.Errorf("%s: got %+v, want the field scope", path, p)
		}
	}
	apitest.Decoded[contract.Problem](t, stage, "GET", "/v1/budgets/session:none", "", 404)
	stage.Clock.Advance(590 * time.Second)
	apitest.Decoded[contract.Problem](t, stage, "GET", "/v1/sessions/s", "", 404)
}

// TestSessionIsLimitedBeforeItsFirstTask sets the limit of a session, waits for longer than
// sessions last, and reads it.
func TestSessionIsLimitedBeforeItsFirstTask(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	b, _ := apitest.Decoded[contract.Budget](t, stage, "PUT", "/v1/budgets/session:new", `{"tokens":15}`, 200)
	if b.Version != 1 || b.Limit.Tokens == nil || *b.Limit.Tokens != 15 || b.Remaining.Turns == nil || *b.Remaining.Turns != 8 {
		t.Errorf("got %+v, want a limit of 15 tokens, and 8 turns", b)
	}
	stage.Clock.Advance(time.Hour)
	session, _ := apitest.Decoded[contract.Session](t, stage, "GET", "/v1/sessions/new", "", 200)
	if diff := cmp.Diff(contract.Session{SessionID: "new", TTLMS: 600_000, TurnsRemaining: new(int64(8)), TokensRemaining: new(int64(15))}, session); diff != "" {
		t.Errorf("got another session (+):\n%s", diff)
	}
	const task = `{"model_ref":"mock","prompt":"abcd","max_tokens":%d,"session_id":"new"}`
	apitest.Decoded[contract.Problem](t, stage, "POST", "/v1/tasks", fmt.Sprintf(task, 20), 429)
	_, header := apitest.Decoded[contract.TaskAccepted](t, stage, "POST", "/v1/tasks", fmt.Sprintf(task, 9), 202)
	if got := header.Get("X-Budget-Tokens-Remaining"); got != "5" {
		t.Errorf("got %q tokens left, want 5", got)
	}
	if p, _ := apitest.Decoded[contract.Problem](t, stage, "PUT", "/v1/budgets/session:a%20b", `{"tokens":15}`, 400); p.Field != "scope" {
		t.Errorf("got %+v for a malformed session, want the field scope", p)
	}
	stage.Clock.Advance(time.Hour)
	apitest.Decoded[contract.Problem](t, stage, "PUT", "/v1/budgets/session:new", `{"tokens":15}`, 404) // it has expired
}

// TestDefaultBudgetsAreThoseOfTheSettings checks that accounts without limits have those of the
// deployment, in the headers, in the response and at the admission.
func TestDefaultBudgetsAreThoseOfTheSettings(t *testing.T) {
	t.Parallel()
	n := func(n int64) *int64 { return &n }
	stage := setup(t, func(s *apitest.Settings) {
		s.Service.Budgets = &budget.Defaults{
			Session: budget.Limit{Turns: n(1), TimeMS: n(7000)}, Project: budget.Limit{Tokens: n(25)}, Tenant: budget.Limit{CostNano: n(50_000)}, SessionTTL: time.Minute,
		}
	})
	const task = `{"model_ref":"mock","prompt":"abcd","max_tokens":9,"deadline_ms":5000,"session_id":"s"}`
	_, header := apitest.Decoded[contract.TaskAccepted](t, stage, "POST", "/v1/tasks", task, 202)
	got := []string{header.Get("X-Budget-Tokens-Remaining"), header.Get("X-Budget-Time-Remaining-Ms"), header.Get("X-Budget-Cost-Remaining")}
	if diff := cmp.Diff([]string{"15", "2000", "0.000032"}, got); diff != "" {
		t.Errorf("got other budget headers (+):\n%s", diff)
	}
	session, _ := apitest.Decoded[contract.Session](t, stage, "GET", "/v1/sessions/s", "", 200)
	if session.TTLMS != 60_000 || session.TurnsRemaining == nil || *session.TurnsRemaining != 0 || session.TimeRemainingMS == nil || *session.TimeRemainingMS != 2000 || session.TokensRemaining != nil || session.CostRemaining != nil {
		t.Errorf("got %+v, want a minute, no turn and 2000 ms left", session)
	}
	project, _ := apitest.Decoded[contract.Budget](t, stage, "GET", "/v1/budgets/project:main", "", 200)
	if diff := cmp.Diff(contract.BudgetLimit{Tokens: n(25)}, project.Limit); diff != "" {
		t.Errorf("got another limit of the project (+):\n%s", diff)
	}
	if p, _ := apitest.Decoded[contract.Problem](t, stage, "POST", "/v1/tasks", task, 409); p.Code != "SESSION_CLOSED" {
		t.Errorf("got %+v for a second turn, want SESSION_CLOSED", p)
	}
	other := strings.Replace(task, `"s"`, `"other"`, 1)
	if p, _ := apitest.Decoded[contract.Problem](t, stage, "POST", "/v1/tasks", strings.Replace(other, `:9`, `:20`, 1), 429); !strings.Contains(p.Detail, "project:main") {
		t.Errorf("got %+v, want the limit of the project", p)
	}
	_, _ = apitest.Decoded[contract.Budget](t, stage, "PUT", "/v1/budgets/project:main", `{"tokens":1000}`, 200)
	if p, _ := apitest.Decoded[contract.Problem](t, stage, "POST", "/v1/tasks", strings.Replace(other, `:9`, `:20`, 1), 429); !strings.Contains(p.Detail, "tenant") {
		t.Errorf("got %+v, want the limit of the tenant", p)
	}
}

// TestConcurrentLimitsHaveTheirOwnEvents changes a budget by several concurrent clients. Each
// change is one event with its own key.
func TestConcurrentLimitsHaveTheirOwnEvents(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	const clients = 6
	var wait sync.WaitGroup
	for i := range clients {
		wait.Go(func() {
			stage.Call(t, "PUT", "/v1/budgets/tenant", fmt.Sprintf(`{"tokens":%d}`, i))
		})
	}
	wait.Wait()
	keys, versions := map[string]bool{}, map[int64]bool{}
	for _, e := range stage.Notes(t) {
		if e.Policy != nil && e.Policy.ID == "tenant" {
			keys[e.IdempotencyKey], versions[e.Policy.Version] = true, true
		}
	}
	b, _ := apitest.Decoded[contract.Budget](t, stage, "GET", "/v1/budgets/tenant", "", 200)
	if int64(len(keys)) != b.Version || int64(len(versions)) != b.Version || b.Version == 0 {
		t.Errorf("got the keys %v and the versions %v, want one of each for the %d changes", keys, versions, b.Version)
	}
}
