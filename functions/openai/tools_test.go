package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

var weather = shared.FunctionParameters{
	"type": "object", "required": []string{"city", "days"},
	"properties": map[string]any{"city": map[string]any{"type": "string"}, "days": map[string]any{"type": "integer"}},
}

const weatherArguments = `{"city":"box","days":1}`

func withTools(prompt string) sdk.ChatCompletionNewParams {
	q := chat(100)
	q.Messages = []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage(prompt)}
	for _, name := range []string{"weather", "news"} {
		q.Tools = append(q.Tools, sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: name, Parameters: weather}))
	}
	return q
}

// TestToolsOfAChat calls tools, streamed and not, and answers the calls.
func TestToolsOfAChat(t *testing.T) {
	t.Parallel()
	s := setup(t)
	q := withTools(mockengine.ParallelTools)
	whole, err := s.client.Chat.Completions.New(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	message := whole.Choices[0].Message
	if calls := message.ToolCalls; whole.Choices[0].FinishReason != "tool_calls" || len(calls) != 2 || calls[0].Function.Name != "weather" || calls[1].Function.Name != "news" ||
		calls[1].Function.Arguments != weatherArguments || calls[0].ID == "" || calls[0].ID == calls[1].ID || message.JSON.Content.Raw() != "null" {
		t.Errorf("got %s, want two calls and no text", whole.RawJSON())
	}
	stream := s.client.Chat.Completions.NewStreaming(t.Context(), q)
	var all sdk.ChatCompletionAccumulator
	for stream.Next() {
		all.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil || len(all.Choices) != 1 || all.Choices[0].FinishReason != "tool_calls" || all.Usage.CompletionTokens != whole.Usage.CompletionTokens {
		t.Fatalf("got %+v (%v), want the same answer as a stream", all, err)
	}
	if got := all.Choices[0].Message.ToolCalls; len(got) != 2 || got[0].Function.Arguments != weatherArguments || got[1].Function.Name != "news" || got[1].ID != message.ToolCalls[1].ID {
		t.Errorf("got %+v, want %+v", got, message.ToolCalls)
	}
	q.Messages = append(q.Messages, message.ToParam(), sdk.ToolMessage("sunny", message.ToolCalls[0].ID), sdk.ToolMessage("quiet", message.ToolCalls[1].ID))
	last, err := s.client.Chat.Completions.New(t.Context(), q)
	if err != nil || last.Choices[0].Message.Content == "" || len(last.Choices[0].Message.ToolCalls) > 0 {
		t.Errorf("got %+v (%v), want a text after the results", last, err)
	}
	q.ToolChoice = sdk.ToolChoiceOptionFunctionToolChoice(sdk.ChatCompletionNamedToolChoiceFunctionParam{Name: "news"})
	if last, err = s.client.Chat.Completions.New(t.Context(), q); err != nil || len(last.Choices[0].Message.ToolCalls) != 1 || last.Choices[0].Message.ToolCalls[0].Function.Name != "news" {
		t.Errorf("got %+v (%v), want a call of the chosen tool", last, err)
	}
	short := withTools("a")
	short.MaxCompletionTokens = param.NewOpt(int64(3))
	if last, err = s.client.Chat.Completions.New(t.Context(), short); err != nil || last.Choices[0].FinishReason != "length" || last.Usage.CompletionTokens != 3 {
		t.Errorf("got %+v (%v), want a call that is cut off", last, err)
	}
}

// TestFormatsOfAChat requests JSON with and without a schema.
func TestFormatsOfAChat(t *testing.T) {
	t.Parallel()
	s := setup(t)
	q := chat(100)
	q.ResponseFormat = sdk.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
		JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "weather", Schema: weather, Strict: param.NewOpt(true)},
	}}
	q.Temperature, q.FrequencyPenalty, q.LogitBias = param.NewOpt(0.5), param.NewOpt(0.5), map[string]int64{"3": -5}
	q.SetExtraFields(map[string]any{"top_k": 5, "min_p": 0.1, "repetition_penalty": 1.1, "chat_template_kwargs": map[string]any{"enable_thinking": false}, "ignore_eos": true})
	got, err := s.client.Chat.Completions.New(t.Context(), q)
	if err != nil || got.Choices[0].Message.Content != weatherArguments || got.Choices[0].FinishReason != "stop" {
		t.Errorf("got %+v (%v), want %s", got, err, weatherArguments)
	}
	q.ResponseFormat = sdk.ChatCompletionNewParamsResponseFormatUnion{OfJSONObject: &shared.ResponseFormatJSONObjectParam{}}
	if got, err = s.client.Chat.Completions.New(t.Context(), q); err != nil || !json.Valid([]byte(got.Choices[0].Message.Content)) {
		t.Errorf("got %+v (%v), want a JSON object", got, err)
	}
}

// TestToolsOfAResponse calls a function, streamed and not, and answers the call. After the stream has
// expired, the answer comes from the transcript.
func TestToolsOfAResponse(t *testing.T) {
	t.Parallel()
	s := setup(t)
	q := responses.ResponseNewParams{
		Model: "mock", Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt(mockengine.ParallelTools)},
		Tools: []responses.ToolUnionParam{responses.ToolParamOfFunction("weather", weather, true), responses.ToolParamOfFunction("news", weather, true)},
	}
	whole, err := s.client.Responses.New(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	check := func(how string, got *responses.Response) {
		t.Helper()
		if len(got.Output) != 2 || got.Status != "completed" || len(got.Tools) != 2 || !got.ParallelToolCalls {
			t.Fatalf("%s: got %s, want two calls", how, got.RawJSON())
		}
		for i, name := range []string{"weather", "news"} {
			if call := got.Output[i].AsFunctionCall(); call.Name != name || call.Arguments != weatherArguments || call.CallID != fmt.Sprint("call_mock", i) || call.Status != "completed" {
				t.Errorf("%s: got %+v, want a call of %s", how, call, name)
			}
		}
	}
	check("whole", whole)
	stream := s.client.Responses.NewStreaming(t.Context(), q)
	deltas := map[string]string{}
	var kinds []string
	for stream.Next() {
		e := stream.Current()
		if len(kinds) == 0 || kinds[len(kinds)-1] != e.Type {
			kinds = append(kinds, e.Type)
		}
		switch e.Type {
		case "response.function_call_arguments.delta":
			deltas[e.ItemID] += e.Delta
		case "response.function_call_arguments.done":
			if e.Arguments != weatherArguments || deltas[e.ItemID] != e.Arguments {
				t.Errorf("got %q after %q, want %s", e.Arguments, deltas[e.ItemID], weatherArguments)
			}
		case "response.completed":
			check("streamed", &e.Response)
		}
	}
	const one = " response.output_item.added response.function_call_arguments.delta response.function_call_arguments.done response.output_item.done"
	if got, want := strings.Join(kinds, " "), "response.created response.in_progress"+one+one+" response.completed"; stream.Err() != nil || got != want {
		t.Errorf("got %s (%v), want %s", got, stream.Err(), want)
	}
	r := s.Run(t, "inf_"+strings.TrimPrefix(whole.ID, "resp_"))
	for !r.State.Terminal() {
		if err := s.dispatcher.Await(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		r = s.Run(t, r.TaskID)
	}
	s.Clock.Advance(2 * time.Hour)
	stored, err := s.client.Responses.Get(t.Context(), whole.ID, responses.ResponseGetParams{})
	if err != nil {
		t.Fatal(err)
	}
	check("stored", stored)
	answer := s.Call(t, http.MethodPost, "/v1/responses", `{"model":"mock","tools":[{"type":"function","name":"weather"}],"tool_choice":{"type":"function","name":"weather"},
		"text":{"format":{"type":"json_schema","name":"x","schema":{}}},"input":[{"role":"user","content":"a"},
		{"type":"function_call","call_id":"c","name":"weather","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"b"}]}]}`)
	if answer.Status != http.StatusOK || !strings.Contains(answer.Body, `"type":"function_call"`) || !strings.Contains(answer.Body, `"format":{"type":"json_schema","name":"x","schema":{}}`) {
		t.Errorf("got %d %s, want a call", answer.Status, answer.Body)
	}
}

// TestToolsOfATask creates a task with tools and reads its stream, and one with the members of an
// engine.
func TestToolsOfATask(t *testing.T) {
	t.Parallel()
	s := setup(t)
	body := `{"model_ref":"mock","max_tokens":50,"tools":[{"type":"function","function":{"name":"weather"}}],"messages":[{"role":"user","content":"a"}%s],
		"top_k":5,"reasoning_effort":"low","engine_options":{"ignore_eos":true}%s}`
	read := func(more, members string) string {
		t.Helper()
		task, _ := apitest.Decoded[contract.TaskAccepted](t, s.Stage, http.MethodPost, "/v1/tasks", fmt.Sprintf(body, more, members), 202)
		return s.Call(t, http.MethodGet, "/v1/tasks/"+task.TaskID+"/stream", "").Body
	}
	if got := read("", ""); !strings.Contains(got, "event: tool_call\n") || !strings.Contains(got, `{"index":0,"id":"call_mock0","name":"weather"}`) || !strings.Contains(got, `"finish_reason":"tool_calls"`) {
		t.Errorf("got %s, want a call", got)
	}
	if got := read(`,{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"weather","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"b"}`, ""); !strings.Contains(got, "event: token\n") {
		t.Errorf("got %s, want a text", got)
	}
	for member, field := range map[string]string{
		`,"engine_options":{"id_slot":1}`:      "id_slot",
		`,"response_format":{"type":"json"}`:   "response_format.type",
		`,"tool_choice":"required","tools":[]`: "tool_choice",
		`,"top_k":-5`:                          "top_k",
		`,"frequency_penalty":3`:               "frequency_penalty",
		`,"tools":[{"type":"web_search"}]`:     "tools.0.type",
		`,"logit_bias":{"a":1}`:                "logit_bias",
		`,"chat_template_kwargs":{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`: "chat_template_kwargs",
	} {
		answer := s.Call(t, http.MethodPost, "/v1/tasks", `{"model_ref":"mock","messages":[{"role":"user","content":"a"}]`+member+`}`)
		if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, `"field":"`+field+`"`) {
			t.Errorf("%s: got %d %s, want 400 of %s", member, answer.Status, answer.Body, field)
		}
	}
}
