package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/await"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	domain "github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// response is a request for an answer of at most a number of tokens.
func response(tokens int64) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: "mock", Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt("tell a story")}, MaxOutputTokens: param.NewOpt(tokens),
		Instructions: param.NewOpt("be brief"), Metadata: map[string]string{"of": "test"},
	}
}

// drain reads the events of a stream unchanged.
func drain(t *testing.T, s *ssestream.Stream[responses.ResponseStreamEventUnion]) (raw, types []string) {
	t.Helper()
	for s.Next() {
		e := s.Current()
		raw, types = append(raw, e.RawJSON()), append(types, e.Type)
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	return raw, types
}

// after returns a request for the events after a number.
func after(number int) responses.ResponseGetParams {
	return responses.ResponseGetParams{StartingAfter: param.NewOpt(int64(number))}
}

// TestResponseIsNotStored requests responses with store: false, complete and streamed.
func TestResponseIsNotStored(t *testing.T) {
	t.Parallel()
	s := setup(t)
	asked := response(3)
	asked.Store = param.NewOpt(false)
	whole, err := s.client.Responses.New(t.Context(), asked)
	if err != nil || whole.OutputText() == "" || !strings.Contains(whole.RawJSON(), `"store":false`) {
		t.Fatalf("got %s (%v), want an answer that is not stored", whole.RawJSON(), err)
	}
	raw, types := drain(t, s.client.Responses.NewStreaming(t.Context(), asked))
	if last := types[len(types)-1]; last != "response.incomplete" {
		t.Fatalf("got the events %v, want the whole answer", types)
	}
	var first responses.ResponseStreamEventUnion
	if err := first.UnmarshalJSON([]byte(raw[0])); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{whole.ID, first.Response.ID} {
		task := "inf_" + strings.TrimPrefix(id, "resp_")
		for _, path := range []string{"/v1/responses/" + id, "/v1/responses/" + id + "?stream=true", "/v1/tasks/" + task + "/stream"} {
			if answer := s.Call(t, http.MethodGet, path, ""); answer.Status != http.StatusNotFound {
				t.Errorf("GET %s: got %d %s, want 404", path, answer.Status, answer.Body)
			}
		}
		if answer := s.Call(t, http.MethodDelete, "/v1/responses/"+id, ""); answer.Status != http.StatusNotFound {
			t.Errorf("DELETE of %s: got %d, want 404", id, answer.Status)
		}
		s.deleted(t, task)
	}
}

// ended waits until all tasks have ended, which frees their slots.
func (s *served) ended(t *testing.T) {
	t.Helper()
	await.Until(t, "the end of all tasks", func() bool {
		page, _, err := s.Store.List(t.Context(), apitest.Tenant, port.Page{Limit: 10})
		open := slices.IndexFunc(page, func(r run.Run) bool { return !r.State.Terminal() })
		if open >= 0 {
			_ = s.dispatcher.Advance(t.Context(), page[open].Ref())
		}
		return err == nil && open < 0
	})
}

// deleted waits until nothing of a request is stored but its usage.
func (s *served) deleted(t *testing.T, task string) {
	t.Helper()
	var r run.Run
	await.Until(t, "the deletion of an answer", func() bool {
		r = s.Run(t, task)
		head, err := s.feed.Head(t.Context(), domain.StreamOf(apitest.Tenant, task))
		if r.AnswerDeleted && err == nil && head.Newest == 0 {
			return true
		}
		_ = s.dispatcher.Advance(t.Context(), r.Ref())
		return false
	})
	if len(r.Work.Inference.Request) > 0 || !r.Execution.ActBy.IsZero() {
		t.Errorf("got the request %s and a check at %s, want neither", r.Work.Inference.Request, r.Execution.ActBy)
	}
	if r.State == run.Completed && (r.Generation == nil || r.Generation.TokensOut == 0 || r.Generation.Trace != "") {
		t.Errorf("got %+v, want the usage, and no transcript", r.Generation)
	}
}

// TestUnstoredResponseIsDeletedInEachCase has a repeated request, one that is too late, a caller that
// disconnects, and one that is lost with its process.
func TestUnstoredResponseIsDeletedInEachCase(t *testing.T) {
	t.Parallel()
	s := setupWith(t, 0, 500*time.Millisecond)
	const ask = `{"model":"mock","store":false,"max_output_tokens":500,"input":"a secret"}`
	ctx, disconnect := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := s.client.Responses.New(ctx, responses.ResponseNewParams{Model: "mock", Store: param.NewOpt(false), Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt("a secret")}})
		gone <- err
	}()
	s.engine.WaitRunning(1)
	disconnect()
	<-gone
	s.ended(t)
	lost, err := s.System.Inference.Create(t.Context(), inferences.NewTask{
		Identity: port.Identity{Tenant: apitest.Tenant}, Model: "mock", Workload: port.WorkloadCompletion, Request: domain.Request{Prompt: "a secret"}, MaxTokens: 1, Unstored: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	late := make(chan error)
	go func() {
		if answer := s.Call(t, http.MethodPost, "/v1/responses", ask, headerDeadline, "2000", "Idempotency-Key", "k"); answer.Status != http.StatusGatewayTimeout {
			t.Errorf("got %d %s, want 504", answer.Status, answer.Body)
		}
		late <- nil
	}()
	_ = s.pass(100*time.Millisecond, late)
	if answer := s.Call(t, http.MethodPost, "/v1/responses", ask, headerDeadline, "2000", "Idempotency-Key", "k"); answer.Status != http.StatusGone || !strings.Contains(answer.Body, "store: false") {
		t.Errorf("got %d %s for the key of a response that is not stored, want 410", answer.Status, answer.Body)
	}
	if r := s.Run(t, lost.Run.TaskID); r.AnswerDeleted || r.Execution.ActBy.Before(r.AnswerBy()) {
		t.Errorf("got a check at %s, want one after the deadline, until which the caller may read", r.Execution.ActBy)
	}
	s.Clock.Advance(10 * time.Minute)
	if err := s.System.Sweep(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	page, _, err := s.Store.List(t.Context(), apitest.Tenant, port.Page{Limit: 10})
	if err != nil || len(page) != 3 {
		t.Fatalf("got %d runs (%v), want 3", len(page), err)
	}
	for _, r := range page {
		s.deleted(t, r.TaskID)
		if _, _, err := s.System.Retry(t.Context(), runs.RetryRequest{Identity: port.Identity{Tenant: apitest.Tenant}, TaskID: r.TaskID}); !fault.Is(err, fault.NotFound) {
			t.Errorf("got %v for a retry, want NOT_FOUND, because the request is not stored", err)
		}
	}
}

// TestNothingIsDroppedInSilence sends unsupported members that would change the answer, and
// members without an effect.
func TestNothingIsDroppedInSilence(t *testing.T) {
	t.Parallel()
	s := setup(t)
	const chat, response = `{"model":"mock","max_tokens":2,"messages":[{"role":"user","content":"a"%s}]%s}`, `{"model":"mock","max_output_tokens":2,"input":[{"role":"user","content":"a"%s}]%s}`
	for _, row := range []struct{ path, body, message, member, field string }{
		{"/v1/chat/completions", chat, "", `,"tool_choice":"required"`, "tool_choice"},
		{"/v1/chat/completions", chat, "", `,"tool_choice":{"type":"function","function":{"name":"f"}}`, "tool_choice"},
		{"/v1/chat/completions", chat, "", `,"tool_choice":"none","function_call":"auto"`, ""},
		{"/v1/chat/completions", chat, "", `,"function_call":{"name":"f"}`, "function_call"},
		{"/v1/chat/completions", chat, "", `,"reasoning_effort":"most"`, "reasoning_effort"},
		{"/v1/chat/completions", chat, "", `,"reasoning_effort":null`, ""},
		{"/v1/chat/completions", chat, `,"name":"alice"`, "", "messages.0.name"},
		{"/v1/responses", response, "", `,"include":["reasoning.encrypted_content"]`, "include"},
		{"/v1/responses", response, "", `,"include":[],"reasoning":{"effort":null},"tool_choice":"auto"`, ""},
		{"/v1/responses", response, "", `,"reasoning":{"effort":"most"}`, "reasoning.effort"},
		{"/v1/responses", response, "", `,"reasoning":{"summary":"auto"}`, "reasoning.summary"},
		{"/v1/responses", response, "", `,"tool_choice":"required"`, "tool_choice"},
		{"/v1/responses", response, `,"name":"bob"`, "", "input.0.name"},
	} {
		body := fmt.Sprintf(row.body, row.message, row.member)
		answer := s.Call(t, http.MethodPost, row.path, body)
		if row.field == "" && answer.Status != http.StatusOK || row.field != "" && (answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, `"param":"`+row.field+`"`)) {
			t.Errorf("%s: got %d %s, want the member %q refused", body, answer.Status, answer.Body, row.field)
		}
	}
}

func TestResponses(t *testing.T) {
	t.Parallel()
	s := setup(t)
	ctx := t.Context()
	whole, err := s.client.Responses.New(ctx, response(5))
	if err != nil || whole.OutputText() == "" || whole.Status != "incomplete" || whole.IncompleteDetails.Reason != "max_output_tokens" ||
		whole.Usage.OutputTokens != 5 || whole.Instructions.OfString != "be brief" || whole.Metadata["of"] != "test" || whole.Background {
		t.Fatalf("got %s (%v), want an answer of 5 tokens", whole.RawJSON(), err)
	}
	again, err := s.client.Responses.Get(ctx, whole.ID, responses.ResponseGetParams{})
	if err != nil || again.RawJSON() != whole.RawJSON() {
		t.Errorf("got %s (%v), want %s", again.RawJSON(), err, whole.RawJSON())
	}
	raw, types := drain(t, s.client.Responses.NewStreaming(ctx, response(3)))
	want := []string{
		"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
		"response.output_text.delta", "response.output_text.delta", "response.output_text.delta",
		"response.output_text.done", "response.content_part.done", "response.output_item.done", "response.incomplete",
	}
	if !slices.Equal(types, want) {
		t.Fatalf("got the events %v, want %v", types, want)
	}
	var first responses.ResponseStreamEventUnion
	if err := first.UnmarshalJSON([]byte(raw[0])); err != nil {
		t.Fatal(err)
	}
	for n := range raw {
		rest, _ := drain(t, s.client.Responses.GetStreaming(ctx, first.Response.ID, after(n)))
		if !slices.Equal(rest, raw[n+1:]) {
			t.Errorf("after %d: got %v, want %v", n, rest, raw[n+1:])
		}
	}
	if all, _ := drain(t, s.client.Responses.GetStreaming(ctx, first.Response.ID, responses.ResponseGetParams{})); !slices.Equal(all, raw) {
		t.Errorf("got %v, want the same events from the first one", all)
	}
	if got := s.engine.asked.Load(); got != 2 {
		t.Errorf("the engine got %d requests, want one for each response", got)
	}
}

// TestResponseInTheBackground disconnects from a background stream, which continues, and
// cancels another response. The callers of both read the state later.
func TestResponseInTheBackground(t *testing.T) {
	t.Parallel()
	s := setup(t)
	in := response(4)
	in.Background = param.NewOpt(true)
	ctx, leave := context.WithCancel(t.Context())
	stream := s.client.Responses.NewStreaming(ctx, in)
	if !stream.Next() {
		t.Fatal(stream.Err())
	}
	id := stream.Current().Response.ID
	leave()
	_ = stream.Close()
	_, types := drain(t, s.client.Responses.GetStreaming(t.Context(), id, after(3)))
	if len(types) != 4+4 || types[len(types)-1] != "response.incomplete" {
		t.Errorf("got %v, want the four tokens and the end", types)
	}
	s.engine.FailNext(mockengine.FailStall, 1)
	begun, err := s.client.Responses.New(t.Context(), in)
	if err != nil || begun.Status != "queued" && begun.Status != "in_progress" || len(begun.Output) > 0 || !begun.Background {
		t.Fatalf("got %s (%v), want a response that has not ended", begun.RawJSON(), err)
	}
	s.engine.WaitRunning(1)
	for range 2 {
		stopped, err := s.client.Responses.Cancel(t.Context(), begun.ID)
		if err != nil || stopped.Status != "cancelled" {
			t.Errorf("got %s (%v), want a cancelled response", stopped.RawJSON(), err)
		}
	}
	if is, err := s.client.Responses.Get(t.Context(), begun.ID, responses.ResponseGetParams{}); err != nil || is.Status != "cancelled" {
		t.Errorf("got %s (%v), want a cancelled response", is.RawJSON(), err)
	}
	if got := s.engine.asked.Load(); got != 2 {
		t.Errorf("the engine got %d requests, want one for each response", got)
	}
}

func TestResponseIsDeleted(t *testing.T) {
	t.Parallel()
	s := setup(t)
	in := response(4)
	in.Background = param.NewOpt(true)
	s.engine.FailNext(mockengine.FailStall, 1)
	r, err := s.client.Responses.New(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	s.engine.WaitRunning(1)
	if err := s.client.Responses.Delete(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	s.engine.WaitRunning(0) // the task was cancelled
	for name, err := range map[string]error{
		"delete": s.client.Responses.Delete(t.Context(), r.ID),
		"get":    second(s.client.Responses.Get(t.Context(), r.ID, responses.ResponseGetParams{})),
		"cancel": second(s.client.Responses.Cancel(t.Context(), r.ID)),
		"stream": s.client.Responses.GetStreaming(t.Context(), r.ID, after(1)).Err(),
	} {
		if wrong, ok := errors.AsType[*sdk.Error](err); !ok || wrong.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got %v, want 404", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestResponsesAreRefused(t *testing.T) {
	t.Parallel()
	s := setup(t)
	done, err := s.client.Responses.New(t.Context(), response(1))
	if err != nil {
		t.Fatal(err)
	}
	talk, err := s.client.Chat.Completions.New(t.Context(), chat(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		method, path, body, param string
		status                    int
	}{
		{"POST", "/v1/responses", `{}`, "input", 400},
		{"POST", "/v1/responses", `{"input":"a"}`, "model", 400},
		{"POST", "/v1/responses", `{"model":"mock","input":[]}`, "input", 400},
		{"POST", "/v1/responses", `{"model":"mock","input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}]}`, "input.0.content.0.image_url", 400},
		{"POST", "/v1/responses", `{"model":"mock","input":[{"type":"function_call_output","output":"x"}]}`, "input.0.call_id", 400},
		{"POST", "/v1/responses", `{"model":"mock","input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,"}]}]}`, "input.0.output.1", 400},
		{"POST", "/v1/responses", `{"model":"mock","input":"a","tools":[{"type":"web_search"}]}`, "tools.0.type", 400},
		{"POST", "/v1/responses", `{"model":"mock","input":"a","previous_response_id":"resp_1"}`, "previous_response_id", 404},
		{"POST", "/v1/responses", `{"model":"mock","input":"a","background":true,"store":false}`, "store", 400},
		{"POST", "/v1/responses", `{"model":"mock","input":"a","max_output_tokens":0}`, "max_output_tokens", 400},
		{"POST", "/v1/responses", `{"model":"mock","input":"a","text":{"format":{"type":"grammar"}}}`, "text.format.type", 400},
		{"POST", "/v1/responses", `{"model":"mock","input":"a","n":2}`, "n", 400},
		{"POST", "/v1/responses", `{"model":"mock","input":"a","prompt":{"id":"x"}}`, "prompt", 400},
		{"POST", "/v1/responses", `{"model":"mock","input":"a","max_tokens":2}`, "max_tokens", 400},
		{"POST", "/v1/responses", `{"model":"mock","input":["a"]}`, "input.0", 400},
		{"POST", "/v1/responses", `{"model":"other","input":"a"}`, "", 404},
		{"POST", "/v1/responses/" + done.ID + "/cancel", "", "response_id", 400},
		{"GET", "/v1/responses/" + done.ID + "?starting_after=1", "", "starting_after", 400},
		{"GET", "/v1/responses/" + done.ID + "?stream=true&starting_after=x", "", "starting_after", 400},
		{"GET", "/v1/responses/" + done.ID + "?stream=1", "", "stream", 400},
		{"GET", "/v1/responses/resp_0", "", "", 404},
		{"GET", "/v1/responses/" + done.ID[len("resp_"):], "", "", 404},
		{"GET", "/v1/responses/resp_" + talk.ID[len("chatcmpl-"):], "", "", 404},
		{"GET", "/v1/models/other", "", "", 404},
	} {
		answer := s.Call(t, row.method, row.path, row.body)
		var problem struct {
			Error struct {
				Param *string `json:"param"`
				Code  string  `json:"code"`
			} `json:"error"`
		}
		decode(t, answer.Body, &problem)
		got := ""
		if p := problem.Error.Param; p != nil {
			got = *p
		}
		if answer.Status != row.status || got != row.param || problem.Error.Code == "context_length_exceeded" {
			t.Errorf("%s %s %s: got %d %s, want %d of %q", row.method, row.path, row.body, answer.Status, answer.Body, row.status, row.param)
		}
	}
	if m, err := s.client.Models.Get(t.Context(), "mock"); err != nil || m.ID != "mock" {
		t.Errorf("got %+v (%v), want the model", m, err)
	}
}

func decode(t *testing.T, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}
