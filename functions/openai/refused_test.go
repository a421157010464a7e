package openai_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/openai/openai-go/v3"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/openai"
)

// TestRetiredModelIsNotServed retires the model of a pool.
func TestRetiredModelIsNotServed(t *testing.T) {
	t.Parallel()
	s := setup(t)
	ctx, who := t.Context(), port.Identity{Tenant: apitest.Tenant}
	models := func() (ids []string) {
		list := s.client.Models.ListAutoPaging(ctx)
		for list.Next() {
			ids = append(ids, list.Current().ID)
		}
		if err := list.Err(); err != nil {
			t.Fatal(err)
		}
		return ids
	}
	if got := models(); len(got) != 1 || got[0] != "mock" {
		t.Errorf("got %v, want mock", got)
	}
	_, _, err := s.System.Models.Create(ctx, who, "mock", catalog.Definition{Engines: []platform.EngineKind{platform.EngineMock}, Workloads: []port.Workload{port.WorkloadCompletion}}, false)
	if err == nil {
		_, err = s.System.Models.SetState(ctx, who, "mock", catalog.Retired, change.Precondition{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := models(); len(got) != 0 {
		t.Errorf("got %v, want no model", got)
	}
	if _, err := s.client.Models.Get(ctx, "mock"); status(err) != http.StatusNotFound {
		t.Errorf("got %v, want 404", err)
	}
	_, err = s.client.Chat.Completions.New(ctx, chat(1))
	if refused := s.tally.Of(series.TasksRejected, "pool_unavailable"); status(err) != http.StatusServiceUnavailable || refused != 1 {
		t.Errorf("got %v after %g requests, want 503 after one", err, refused)
	}
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"mock","messages":[{"role":"user","content":"a"}]}`,
		"/v1/completions":      `{"model":"mock","prompt":"a"}`,
		"/v1/responses":        `{"model":"mock","input":"a"}`,
		"/v1/tasks":            `{"model_ref":"mock","prompt":"a"}`,
	} {
		answer := s.Call(t, http.MethodPost, path, body)
		if answer.Status != http.StatusServiceUnavailable || answer.Header.Get("X-Should-Retry") != "false" || answer.Header.Get("Retry-After") == "" {
			t.Errorf("%s: got %d %v %s, want 503 without a retry", path, answer.Status, answer.Header, answer.Body)
		}
	}
}

// TestUnknownPathIsAnError sends requests that OpenAI's API serves and Sortie does not.
func TestUnknownPathIsAnError(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for _, row := range []struct {
		method, path string
		status       int
		code         string
	}{
		{"POST", "/v1/moderations", 404, "unknown_url"},
		{"GET", "/v1/files/x/content", 404, "unknown_url"},
		{"GET", "/v1/", 404, "unknown_url"},
		{"GET", "/v1/chat/completions", 405, "method_not_supported"},
		{"DELETE", "/v1/models/mock", 405, "method_not_supported"},
		{"PUT", "/v1/tasks", 405, "method_not_supported"},
	} {
		answer := s.Call(t, row.method, row.path, "", "X-Correlation-Id", "mine")
		var got struct {
			Code, Detail string
			Error        openai.ErrorDetail
		}
		decode(t, answer.Body, &got)
		if answer.Status != row.status || got.Error.Code != row.code || got.Error.Type != "invalid_request_error" || got.Error.Message != got.Detail || got.Detail == "" || got.Code == "" {
			t.Errorf("%s %s: got %d %s, want %d %s", row.method, row.path, answer.Status, answer.Body, row.status, row.code)
		}
		if answer.Header.Get("X-Request-Id") != "mine" || answer.Header.Get("X-Correlation-Id") != "mine" {
			t.Errorf("%s %s: got %v, want the id of the request", row.method, row.path, answer.Header)
		}
	}
	_, err := s.client.Moderations.New(t.Context(), sdk.ModerationNewParams{Input: sdk.ModerationNewParamsInputUnion{OfString: sdk.String("a")}})
	if wrong, ok := errors.AsType[*sdk.Error](err); !ok || wrong.Code != "unknown_url" || !strings.Contains(wrong.Message, "unknown path") {
		t.Errorf("got %v, want the error of an unknown path", err)
	}
}

// TestRequestHasAnID checks that each response has the id of its request, in the header that
// OpenAI's clients read.
func TestRequestHasAnID(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"mock","max_tokens":1,"messages":[{"role":"user","content":"a"}]}`,
		"/v1/completions":      `{"model":"mock","max_tokens":1,"stream":true,"prompt":"a"}`,
		"/v1/responses":        `{"model":"other","input":"a"}`,
		"/v1/tasks":            `{"model_ref":"mock","max_tokens":1,"prompt":"a"}`,
	} {
		answer := s.Call(t, http.MethodPost, path, body)
		if id := answer.Header.Get("X-Request-Id"); id == "" || id != answer.Header.Get("X-Correlation-Id") {
			t.Errorf("%s: got %d %v, want one id", path, answer.Status, answer.Header)
		}
	}
}

func status(err error) int {
	if wrong, ok := errors.AsType[*sdk.Error](err); ok {
		return wrong.StatusCode
	}
	return 0
}

// TestEachRefusalIsCounted refuses requests of each route that accepts tasks, in the handler and
// before it.
func TestEachRefusalIsCounted(t *testing.T) {
	t.Parallel()
	s := setup(t)
	want := map[string]int{}
	asks := map[string]string{
		"/v1/chat/completions": `{"model":"%s","max_tokens":%d,"messages":[{"role":"user","content":"a"}]}`,
		"/v1/completions":      `{"model":"%s","max_tokens":%d,"prompt":"a"}`,
		"/v1/responses":        `{"model":"%s","max_output_tokens":%d,"input":"a"}`,
		"/v1/tasks":            `{"model_ref":"%s","max_tokens":%d,"prompt":"a"}`,
	}
	for path, ask := range asks {
		good := fmt.Sprintf(ask, "mock", 1)
		for _, row := range []struct {
			body, reason string
			headers      []string
		}{
			{`{`, "invalid_request", nil},
			{`{"unknown":1}`, "invalid_request", nil},
			{fmt.Sprintf(ask, "other", 1), "model_unknown", nil},
			{fmt.Sprintf(ask, "mock", -1), "invalid_params", nil},
			{fmt.Sprintf(ask, "mock", 40_000), "invalid_params", nil},
			{good, "deadline_unmet", []string{"X-Deadline-Ms", "0"}},
			{good, "untrusted_artifact", []string{"X-Trust-Policy", "strict"}},
			{good, "invalid_request", []string{"Idempotency-Key", strings.Repeat("k", 300)}},
			{good, "unsupported_media_type", []string{"Content-Type", "text/plain"}},
			{good, "forbidden", []string{"Origin", "https://example.com"}},
		} {
			answer := s.Call(t, http.MethodPost, path, row.body, row.headers...)
			if answer.Status < 400 {
				t.Errorf("%s %s %v: got %d, want a refusal", path, row.body, row.headers, answer.Status)
			}
			want[row.reason]++
		}
		if answer := s.Call(t, http.MethodPost, path+"?x=1", good); answer.Status != http.StatusBadRequest {
			t.Errorf("%s: got %d for an unknown parameter, want 400", path, answer.Status)
		}
		want["invalid_request"]++
		if answer := s.Call(t, http.MethodPost, path, good); answer.Status >= 400 {
			t.Errorf("%s: got %d %s, want an answer", path, answer.Status, answer.Body)
		}
	}
	got := map[string]int{}
	for reason := range want {
		got[reason] = int(s.tally.Of(series.TasksRejected, reason))
	}
	if !maps.Equal(got, want) {
		t.Errorf("got the refusals %v, want %v", got, want)
	}
}
