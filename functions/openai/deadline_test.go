package openai_test

import (
	"errors"
	"fmt"
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

// TestDeadlineOfABody has the member of the four bodies, which precedes the header, and its
// refusals.
func TestDeadlineOfABody(t *testing.T) {
	t.Parallel()
	s := setup(t)
	limit := func(ms int64) {
		t.Helper()
		pool, err := s.Store.LoadPool(t.Context(), platform.PoolRef{Tenant: apitest.Tenant, ID: "pool0"})
		if err != nil {
			t.Fatal(err)
		}
		pool.Engine.LongestDeadlineMS = ms
		if err := s.Store.SavePool(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	for path, body := range map[string]string{
		"/v1/responses":        `{"model":"mock","max_output_tokens":1,"input":"a"`,
		"/v1/chat/completions": `{"model":"mock","max_tokens":1,"messages":[{"role":"user","content":"a"}]`,
		"/v1/completions":      `{"model":"mock","max_tokens":1,"prompt":"a"`,
		"/v1/embeddings":       `{"model":"mock","input":"a"`,
		"/v1/rerank":           `{"model":"mock","query":"a","documents":["a"]`,
	} {
		refused := func(field, message, more string, headers ...string) {
			t.Helper()
			var e struct {
				Error struct{ Code, Param, Message string }
			}
			answer := s.Call(t, http.MethodPost, path, body+more+"}", headers...)
			if decode(t, answer.Body, &e); answer.Status != http.StatusBadRequest || e.Error.Param != field || !strings.Contains(e.Error.Message, message) {
				t.Errorf("%s with %s%v: got %d %s, want 400 of %s with %q", path, more, headers, answer.Status, answer.Body, field, message)
			}
		}
		refused("deadline_ms", "want 1 to 86400000", `,"deadline_ms":0`)
		refused("deadline_ms", "want 1 to 86400000", `,"deadline_ms":86400001`)
		refused("deadline_ms", "", `,"deadline_ms":"1s"`)
		refused("deadline_ms", "want 1 to 3600000, the limit of a request whose caller waits", `,"deadline_ms":3600001`)
		refused(headerDeadline, "want 1 to 3600000, the limit of a request whose caller waits", "", headerDeadline, "3600001")
		if answer := s.Call(t, http.MethodPost, path, body+`,"deadline_ms":3600000}`, headerDeadline, "2000"); answer.Status != http.StatusOK {
			t.Errorf("%s: got %d %s, want the deadline of the body", path, answer.Status, answer.Body)
		}
		if answer := s.Call(t, http.MethodPost, path, body+`,"deadline_ms":null}`); answer.Status != http.StatusOK {
			t.Errorf("%s: got %d %s, want the default deadline", path, answer.Status, answer.Body)
		}
		limit(60_000)
		refused("deadline_ms", "want 1 to 60000, the limit of the pool", `,"deadline_ms":60001`)
		limit(0)
	}
	var created struct{ ID string }
	decode(t, s.Call(t, http.MethodPost, "/v1/responses", `{"model":"mock","background":true,"input":"a","deadline_ms":86400000}`).Body, &created)
	if got := s.Run(t, "inf_"+strings.TrimPrefix(created.ID, "resp_")).Work.Inference.Within; got != 24*time.Hour {
		t.Errorf("got a deadline of %s in the background, want a day", got)
	}
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

// TestLateAnswerCanBeRead reads what an engine has generated before the deadline, from the
// address in the error, before and after the stream has expired.
func TestLateAnswerCanBeRead(t *testing.T) {
	t.Parallel()
	s := setupWith(t, 0, 500*time.Millisecond)
	late := func(path, body string) apitest.Answer {
		t.Helper()
		var answer apitest.Answer
		ended := make(chan error)
		go func() {
			answer = s.Call(t, http.MethodPost, path, body, headerDeadline, "2000")
			ended <- nil
		}()
		_ = s.pass(100*time.Millisecond, ended)
		return answer
	}
	for path, body := range map[string]string{
		"/v1/responses":        `{"model":"mock","max_output_tokens":500,"input":"a"}`,
		"/v1/chat/completions": `{"model":"mock","max_tokens":500,"messages":[{"role":"user","content":"a"}]}`,
		"/v1/completions":      `{"model":"mock","max_tokens":500,"prompt":"a"}`,
	} {
		answer := late(path, body)
		at := answer.Header.Get("Location")
		if answer.Status != http.StatusGatewayTimeout || at == "" || !strings.Contains(answer.Body, "GET "+at+" has the text until then") {
			t.Fatalf("%s: got %d %q %s, want 504 with the address of the text", path, answer.Status, at, answer.Body)
		}
		got := s.Call(t, http.MethodGet, at, "")
		if path != "/v1/responses" {
			if !strings.Contains(got.Body, "event: token\n") || !strings.Contains(got.Body, "DEADLINE_UNMET") {
				t.Errorf("GET %s: got %d %s, want tokens and the failure", at, got.Status, got.Body)
			}
			continue
		}
		var first, again struct {
			Status string
			Output []struct{ Content []struct{ Text string } }
		}
		if decode(t, got.Body, &first); first.Status != "failed" || len(first.Output) != 1 || first.Output[0].Content[0].Text == "" {
			t.Errorf("GET %s: got %s, want a failed response with its text", at, got.Body)
		}
		task, _ := openai.TaskOf(strings.TrimPrefix(at, "/v1/responses/"))
		for r := s.Run(t, task); !r.State.Terminal(); r = s.Run(t, task) {
			if err := s.dispatcher.Await(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		s.Clock.Advance(2 * time.Hour) // the streams of this server expire after one hour
		if decode(t, s.Call(t, http.MethodGet, at, "").Body, &again); fmt.Sprint(again) != fmt.Sprint(first) {
			t.Errorf("GET %s: got %v after the stream has expired, want %v", at, again, first)
		}
	}
	unstored := late("/v1/responses", `{"model":"mock","store":false,"max_output_tokens":500,"input":"a"}`)
	if unstored.Status != http.StatusGatewayTimeout || unstored.Header.Get("Location") != "" {
		t.Errorf("got %d at %q, want 504 without an address", unstored.Status, unstored.Header.Get("Location"))
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
