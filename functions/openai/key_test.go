package openai_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// keyed returns a client with a token that has limits, and the token's holder.
func (s *served) keyed(name string, expires time.Time, g access.Grant) (sdk.Client, port.Identity) {
	text := "the-token-of-" + name
	token := access.Token{
		Name: name, SHA256: access.Digest(text), Tenant: apitest.Tenant, Project: "main", Scopes: access.Ordinary(), ExpiresAt: expires, Grant: g,
	}
	s.keys.list = append(slices.Clone(s.keys.list), token)
	return sdk.NewClient(append(slices.Clone(s.client.Options), option.WithAPIKey(text), option.WithMaxRetries(0))...), port.IdentityOf(token)
}

// refusal is the official client's error of a refused request.
func refusal(t *testing.T, err error) *sdk.Error {
	t.Helper()
	refused, ok := errors.AsType[*sdk.Error](err)
	if !ok {
		t.Fatalf("got %v, want a refusal", err)
	}
	return refused
}

// task returns the id of a task.
func (s *served) task(t *testing.T) string {
	t.Helper()
	list, _, err := s.Store.List(t.Context(), apitest.Tenant, port.Page{Limit: 1})
	if err != nil || len(list) != 1 {
		t.Fatalf("got %d tasks, %v", len(list), err)
	}
	return list[0].TaskID
}

// retry retries a task as a caller.
func (s *served) retry(t *testing.T, who port.Identity) error {
	t.Helper()
	_, _, err := s.System.Runs.Retry(t.Context(), runs.RetryRequest{Identity: who, TaskID: s.task(t)})
	return err
}

func TestKeyMayUseItsModels(t *testing.T) {
	t.Parallel()
	s := setup(t)
	other, who := s.keyed("other", time.Time{}, access.Grant{Models: []string{"other"}})
	own, _ := s.keyed("own", time.Time{}, access.Grant{Models: []string{"mock"}})
	for want, client := range []sdk.Client{other, own} {
		list, err := client.Models.List(t.Context())
		if err != nil || len(list.Data) != want {
			t.Errorf("got %+v, %v, want %d models", list, err, want)
		}
	}
	if _, err := other.Models.Get(t.Context(), "mock"); refusal(t, err).StatusCode != http.StatusNotFound {
		t.Errorf("got %v, want 404", err)
	}
	_, err := other.Chat.Completions.New(t.Context(), chat(1))
	if f := refusal(t, err); f.StatusCode != http.StatusNotFound || f.Code != "model_not_found" || !strings.Contains(f.Message, "may not use") {
		t.Errorf("got %+v, want 404", f)
	}
	_, err = own.Chat.Completions.New(t.Context(), chat(1))
	if err != nil {
		t.Fatal(err)
	}
	err = s.retry(t, who)
	if !fault.Is(err, fault.ModelUnknown) {
		t.Errorf("got %v for the retry of the task of another key, want MODEL_UNKNOWN", err)
	}
}

// TestBudgetOfKey spends the budget of a key, which neither the key nor a retry can exceed.
func TestBudgetOfKey(t *testing.T) {
	t.Parallel()
	s := setup(t)
	ctx := t.Context()
	grant := access.Grant{Budget: &budget.Allowance{CostNano: 10 * 2000, Period: budget.Day}}
	client, who := s.keyed("alice", time.Time{}, grant)
	_, err := client.Chat.Completions.New(ctx, chat(6))
	if err != nil {
		t.Fatal(err)
	}
	scope := budget.KeyScope("alice", budget.Day, s.Clock.Now())
	_, err = client.Chat.Completions.New(ctx, chat(6))
	if f := refusal(t, err); f.StatusCode != http.StatusTooManyRequests || !strings.Contains(f.Message, scope) || f.Response.Header.Get("X-Should-Retry") != "false" {
		t.Errorf("got %+v, want 429 that names %s", f, scope)
	}
	err = s.retry(t, who)
	if !fault.Is(err, fault.AdmissionReject) {
		t.Errorf("got %v for a retry, want ADMISSION_REJECT", err)
	}
	a, err := s.System.Budgets.Budget(ctx, who, "key")
	if left := a.Left(budget.Limit{}); err != nil || a.Scope != scope || left.CostNano == nil || *left.CostNano != 4*2000 {
		t.Errorf("got %+v, %v, want 4 tokens left", a, err)
	}
	for _, of := range []string{"key", scope} {
		if _, err := s.System.Budgets.PutBudget(ctx, who, of, budget.Limit{}); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%s: got %v, want the limit refused", of, err)
		}
	}
	who.Tenant = "other"
	if a, err := s.System.Budgets.Budget(ctx, who, "key"); err != nil || !a.Spent.Zero() {
		t.Errorf("got %+v, %v, want nothing of another tenant", a, err)
	}
	if _, err := s.System.Budgets.Budget(ctx, port.Identity{Tenant: apitest.Tenant, Key: "bob"}, "key"); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v for a key without a budget, want NOT_FOUND", err)
	}
}

func TestRateOfKey(t *testing.T) {
	t.Parallel()
	s := setup(t)
	client, _ := s.keyed("alice", time.Time{}, access.Grant{RequestsPerMinute: 1})
	if _, err := client.Chat.Completions.New(t.Context(), chat(1)); err != nil {
		t.Fatal(err)
	}
	_, err := client.Chat.Completions.New(t.Context(), chat(1))
	wait := s.Clock.Now().Truncate(time.Minute).Add(time.Minute).Sub(s.Clock.Now())
	f := refusal(t, err)
	after, problem := time.ParseDuration(f.Response.Header.Get("Retry-After") + "s")
	if f.StatusCode != http.StatusTooManyRequests || f.Code != "rate_limit_exceeded" || problem != nil || after < wait || after >= wait+time.Second || f.Response.Header.Get("X-Should-Retry") != "" {
		t.Errorf("got %+v with %v, want 429 and a retry after %v", f, f.Response.Header, wait)
	}
	if _, err := s.client.Chat.Completions.New(t.Context(), chat(1)); err != nil {
		t.Errorf("got %v for another client", err)
	}
}

func TestExpiredKeyIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.keys.required = true
	client, _ := s.keyed("alice", s.Clock.Now().Add(time.Nanosecond), access.Grant{})
	if _, err := client.Chat.Completions.New(t.Context(), chat(1)); err != nil {
		t.Fatal(err)
	}
	s.Clock.Advance(time.Nanosecond)
	_, err := client.Chat.Completions.New(t.Context(), chat(1))
	if f := refusal(t, err); f.StatusCode != http.StatusUnauthorized || f.Code != "invalid_api_key" {
		t.Errorf("got %+v, want 401", f)
	}
}
