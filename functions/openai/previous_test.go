package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestResponseContinuesAnother continues a response, and that one again. Its instructions do not
// apply to the next ones.
func TestResponseContinuesAnother(t *testing.T) {
	t.Parallel()
	s := setup(t)
	first, err := s.client.Responses.New(t.Context(), response(3))
	if err != nil {
		t.Fatal(err)
	}
	next := func(id, text string) *responses.Response {
		t.Helper()
		in := response(2)
		in.PreviousResponseID, in.Instructions = param.NewOpt(id), param.NewOpt("be kind")
		in.Input.OfString = param.NewOpt(text)
		got, err := s.client.Responses.New(t.Context(), in)
		if err != nil || got.PreviousResponseID != id {
			t.Fatalf("got %+v (%v), want one that continues %s", got, err, id)
		}
		return got
	}
	second := next(first.ID, "and then?")
	third := next(second.ID, "the end?")
	stored, err := s.Store.Load(t.Context(), run.Ref{Tenant: apitest.Tenant, ID: "inf_" + strings.TrimPrefix(third.ID, "resp_")})
	if err != nil {
		t.Fatal(err)
	}
	var q inference.Request
	if err := json.Unmarshal(stored.Work.Inference.Request, &q); err != nil {
		t.Fatal(err)
	}
	want := []port.Message{
		{Role: "system", Content: "be kind"},
		{Role: "user", Content: "tell a story"},
		{Role: "assistant", Content: first.OutputText()},
		{Role: "user", Content: "and then?"},
		{Role: "assistant", Content: second.OutputText()},
		{Role: "user", Content: "the end?"},
	}
	if diff := cmp.Diff(want, q.Messages); diff != "" {
		t.Errorf("wrong messages (-want +got):\n%s", diff)
	}
}

// TestResponseContinuesCalls answers the call of a function in a response that continues it.
func TestResponseContinuesCalls(t *testing.T) {
	t.Parallel()
	s := setup(t)
	const tools = `"tools":[{"type":"function","name":"find","parameters":{"type":"object"}}]`
	var first responses.Response
	answer := s.Call(t, http.MethodPost, "/v1/responses", `{"model":"mock","input":"a",`+tools+`}`)
	if err := json.Unmarshal([]byte(answer.Body), &first); err != nil || len(first.Output) == 0 || first.Output[0].CallID == "" {
		t.Fatalf("got %s (%v), want a call", answer.Body, err)
	}
	answer = s.Call(t, http.MethodPost, "/v1/responses", fmt.Sprintf(
		`{"model":"mock","previous_response_id":%q,"input":[{"type":"function_call_output","call_id":%q,"output":"box"}],%s}`, first.ID, first.Output[0].CallID, tools))
	if answer.Status != http.StatusOK || !strings.Contains(answer.Body, `"type":"message"`) {
		t.Errorf("got %d %s, want a text after the result", answer.Status, answer.Body)
	}
}

// TestPreviousResponseMustBeComplete continues responses that are unknown, not stored, deleted, of a
// task, cancelled or not complete.
func TestPreviousResponseMustBeComplete(t *testing.T) {
	t.Parallel()
	s := setup(t)
	refused := func(name, id string, status int, code string) {
		t.Helper()
		answer := s.Call(t, http.MethodPost, "/v1/responses", fmt.Sprintf(`{"model":"mock","input":"a","previous_response_id":%q}`, id))
		if answer.Status != status || !strings.Contains(answer.Body, `"code":"`+code+`"`) || !strings.Contains(answer.Body, `"param":"previous_response_id"`) {
			t.Errorf("%s: got %d %s, want %d %s", name, answer.Status, answer.Body, status, code)
		}
	}
	const unknown = "previous_response_not_found"
	refused("unknown", "resp_01K0000000000000000000000", http.StatusNotFound, unknown)
	refused("malformed", "../tasks", http.StatusNotFound, unknown)
	refused("of another form", "chatcmpl-01K", http.StatusNotFound, unknown)
	in := response(2)
	in.Store = param.NewOpt(false)
	unstored, err := s.client.Responses.New(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	refused("not stored", unstored.ID, http.StatusNotFound, unknown)
	gone, err := s.client.Responses.New(t.Context(), response(2))
	if err == nil {
		err = s.client.Responses.Delete(t.Context(), gone.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	refused("deleted", gone.ID, http.StatusNotFound, unknown)
	answered, err := s.client.Chat.Completions.New(t.Context(), chat(1))
	if err != nil {
		t.Fatal(err)
	}
	refused("a chat", strings.Replace(answered.ID, "chatcmpl-", "resp_", 1), http.StatusNotFound, unknown)
	s.engine.FailNext(mockengine.FailStall, 1)
	in = response(4)
	in.Background = param.NewOpt(true)
	begun, err := s.client.Responses.New(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	s.engine.WaitRunning(1)
	refused("running", begun.ID, http.StatusBadRequest, "invalid_request")
	if _, err := s.client.Responses.Cancel(t.Context(), begun.ID); err != nil {
		t.Fatal(err)
	}
	refused("cancelled", begun.ID, http.StatusBadRequest, "invalid_request")
}

// TestResponsesHaveOptions sends the members of the sampling and of the engine with a response.
func TestResponsesHaveOptions(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for member, field := range map[string]string{
		`"temperature":0.5,"top_p":0.9,"seed":7,"stop":["x"]`:                        "",
		`"presence_penalty":1,"frequency_penalty":-1,"repetition_penalty":1.1`:       "",
		`"min_p":0.1,"top_k":5,"logit_bias":{"7":-100},"cache_prompt":true`:          "",
		`"chat_template_kwargs":{"enable_thinking":false},"previous_response_id":""`: "",
		`"seed":null,"stop":null,"logit_bias":null,"previous_response_id":null`:      "",
		`"presence_penalty":3`:       "presence_penalty",
		`"top_k":-2`:                 "top_k",
		`"stop":[""]`:                "stop",
		`"seed":"a"`:                 "seed",
		`"chat_template_kwargs":[1]`: "chat_template_kwargs",
		`"previous_response_id":7`:   "previous_response_id",
		`"logprobs":true`:            "logprobs",
		`"n":2`:                      "n",
	} {
		answer := s.Call(t, http.MethodPost, "/v1/responses", `{"model":"mock","input":"a","max_output_tokens":2,`+member+`}`)
		if field == "" && answer.Status != http.StatusOK || field != "" && (answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, `"param":"`+field+`"`)) {
			t.Errorf("%s: got %d %s, want the member %q refused", member, answer.Status, answer.Body, field)
		}
	}
}
