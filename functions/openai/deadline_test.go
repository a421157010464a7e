package openai_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/openai"
)

const headerDeadline = "X-Deadline-Ms"

// TestDeadlineIsThatOfTheRequestOrOfThePool covers the three sources of a deadline.
func TestDeadlineIsThatOfTheRequestOrOfThePool(t *testing.T) {
	t.Parallel()
	s := setup(t)
	ctx := t.Context()
	within := func(taskID string) time.Duration {
		t.Helper()
		r, err := s.Store.Find(ctx, apitest.Tenant, taskID)
		if err != nil {
			t.Fatal(err)
		}
		return r.Work.Inference.Within
	}
	asks := map[string]func(headers ...string) string{
		"chat": func(headers ...string) string {
			return "inf_" + strings.TrimPrefix(must(s.client.Chat.Completions.New(ctx, chat(1), with(headers)...)).ID, "chatcmpl-")
		},
		"response": func(headers ...string) string {
			id, _ := openai.TaskOf(must(s.client.Responses.New(ctx, response(1), with(headers)...)).ID)
			return id
		},
		"task": func(headers ...string) string {
			task, _ := apitest.Decoded[contract.TaskAccepted](t, s.Stage, http.MethodPost, "/v1/tasks", `{"model_ref":"mock","prompt":"a","max_tokens":1}`, 202, headers...)
			return task.TaskID
		},
	}
	check := func(want time.Duration, headers ...string) {
		t.Helper()
		for name, ask := range asks {
			if got := within(ask(headers...)); got != want {
				t.Errorf("%s with %v: got a deadline of %s, want %s", name, headers, got, want)
			}
		}
	}
	check(5 * time.Minute)
	check(2*time.Second, headerDeadline, "2000")
	pool, err := s.Store.LoadPool(ctx, platform.PoolRef{Tenant: apitest.Tenant, ID: "pool0"})
	if err != nil {
		t.Fatal(err)
	}
	pool.Engine.DeadlineMS = 20_000
	if err := s.Store.SavePool(ctx, pool); err != nil {
		t.Fatal(err)
	}
	check(20 * time.Second)
	check(40*time.Second, headerDeadline, "40000")
	task, _ := apitest.Decoded[contract.TaskAccepted](t, s.Stage, http.MethodPost, "/v1/tasks", `{"model_ref":"mock","prompt":"a","deadline_ms":3000}`, 202, headerDeadline, "40000")
	if got := within(task.TaskID); got != 3*time.Second {
		t.Errorf("got a deadline of %s, want the 3s of the body", got)
	}
}

func with(headers []string) (options []option.RequestOption) {
	for i := 0; i < len(headers); i += 2 {
		options = append(options, option.WithHeader(headers[i], headers[i+1]))
	}
	return options
}

func must[T any](v *T, err error) *T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestDeadlineOfAHeaderPasses uses an engine that needs more time than the header allows.
func TestDeadlineOfAHeaderPasses(t *testing.T) {
	t.Parallel()
	s := setupWith(t, 0, 10*time.Second)
	ended := make(chan error)
	go func() {
		_, err := s.client.Chat.Completions.New(t.Context(), chat(200), option.WithHeader(headerDeadline, "2000"))
		ended <- err
	}()
	s.engine.WaitRunning(1)
	err := s.pass(100*time.Millisecond, ended)
	refused, ok := errors.AsType[*sdk.Error](err)
	if !ok || refused.StatusCode != http.StatusGatewayTimeout || refused.Code != "deadline_unmet" || !strings.Contains(refused.Message, "deadline of 2s") {
		t.Errorf("got %v, want 504 deadline_unmet at the deadline of 2s", err)
	}
}

// TestAnswerWithoutALimitEnds calls the mock without max_tokens, and with more than it
// generates.
func TestAnswerWithoutALimitEnds(t *testing.T) {
	t.Parallel()
	s := setup(t)
	open := chat(1)
	open.MaxCompletionTokens = param.Opt[int64]{}
	for range 2 {
		got, err := s.client.Chat.Completions.New(t.Context(), open)
		if err != nil || got.Choices[0].FinishReason != "stop" || got.Usage.CompletionTokens < 32 || got.Usage.CompletionTokens > 95 {
			t.Errorf("got %+v (%v), want an answer of 32 to 95 tokens that ends by itself", got, err)
		}
	}
	if got, err := s.client.Chat.Completions.New(t.Context(), chat(500)); err != nil || got.Choices[0].FinishReason != "length" || got.Usage.CompletionTokens != 500 {
		t.Errorf("got %+v (%v), want 500 tokens", got, err)
	}
}
