package inference_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestOptionsAreChecked has an invalid value of each option, with the field of its fault.
func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	deep := json.RawMessage(strings.Repeat(`{"not":`, inference.Nesting) + "{}" + strings.Repeat("}", inference.Nesting))
	schema := func(text string) port.GenerationOptions {
		return port.GenerationOptions{Tools: []port.Tool{{Name: "f", Parameters: json.RawMessage(text)}}}
	}
	at := func(path string) string { return "tools.0.function.parameters" + path }
	n := func(v float64) *float64 { return &v }
	for i, row := range []struct {
		o     port.GenerationOptions
		field string
	}{
		{port.GenerationOptions{Tools: []port.Tool{{Name: "__proto__"}}}, ""},
		{port.GenerationOptions{Tools: []port.Tool{{Name: "a b"}}}, "tools.0.function.name"},
		{port.GenerationOptions{Tools: make([]port.Tool, inference.Tools+1)}, "tools"},
		{schema(`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":["string","null"]}},"required":["a"],"additionalProperties":false}`), ""},
		{schema(`{"properties":{"__proto__":{"type":"string"},"constructor":true}}`), ""},
		{schema(`[]`), at("")},
		{schema(`{"type":5}`), at(".type")},
		{schema(`{"properties":[]}`), at(".properties")},
		{schema(`{"properties":{"a":5}}`), at(".properties.a")},
		{schema(`{"anyOf":{}}`), at(".anyOf")},
		{schema(`{"items":"string"}`), at(".items")},
		{schema(`{"required":"a"}`), at(".required")},
		{schema(`{"enum":[]}`), at(".enum")},
		{schema(`{"minLength":"1"}`), at(".minLength")},
		{schema(`{"$ref":"http://169.254.169.254/"}`), at(".$ref")},
		{schema(`{"properties":{"` + strings.Repeat("a", 1000) + `":5}}`), at("")},
		{schema(string(deep)), at("")},
		{port.GenerationOptions{ToolChoice: port.ToolChoice{Mode: "required"}}, "tool_choice"},
		{port.GenerationOptions{ToolChoice: port.ToolChoice{Mode: "maybe"}}, "tool_choice"},
		{port.GenerationOptions{Tools: []port.Tool{{Name: "f"}}, ToolChoice: port.ToolChoice{Mode: "function", Function: "g"}}, "tool_choice"},
		{port.GenerationOptions{Format: port.Format{Type: "grammar"}}, "response_format.type"},
		{port.GenerationOptions{Format: port.Format{Type: port.FormatSchema}}, "response_format.json_schema.schema"},
		{port.GenerationOptions{Format: port.Format{Type: port.FormatSchema, Schema: deep}}, "response_format.json_schema.schema"},
		{port.GenerationOptions{Format: port.Format{Type: port.FormatSchema, Name: "a b", Schema: json.RawMessage(`{}`)}}, "response_format.json_schema.name"},
		{port.GenerationOptions{ReasoningEffort: "most"}, "reasoning_effort"},
		{port.GenerationOptions{TemplateKwargs: json.RawMessage(`[1]`)}, "chat_template_kwargs"},
		{port.GenerationOptions{TemplateKwargs: deep}, "chat_template_kwargs"},
		{port.GenerationOptions{Extra: map[string]json.RawMessage{"id_slot": json.RawMessage(`1`)}}, "id_slot"},
		{port.GenerationOptions{Extra: map[string]json.RawMessage{"grammar": deep}}, "grammar"},
		{port.GenerationOptions{Sampling: port.Sampling{FrequencyPenalty: n(2.1)}}, "frequency_penalty"},
		{port.GenerationOptions{Sampling: port.Sampling{PresencePenalty: n(-3)}}, "presence_penalty"},
		{port.GenerationOptions{Sampling: port.Sampling{RepetitionPenalty: n(0)}}, "repetition_penalty"},
		{port.GenerationOptions{Sampling: port.Sampling{MinP: n(1.5)}}, "min_p"},
		{port.GenerationOptions{Sampling: port.Sampling{LogitBias: map[string]float64{"a": 1}}}, "logit_bias"},
		{port.GenerationOptions{Sampling: port.Sampling{LogitBias: map[string]float64{"1": 101}}}, "logit_bias"},
	} {
		q := inference.Request{Messages: []port.Message{{Role: "user", Content: "a"}}, Options: &row.o}
		err := q.Check(port.WorkloadCompletion)
		if f := fault.Of(err); row.field == "" && err != nil || row.field != "" && (f == nil || f.Field != row.field) {
			t.Errorf("row %d: got %v, want a fault of %q", i, err, row.field)
		}
	}
}

// TestMessagesOfToolsAreChecked has invalid messages of a conversation with tools.
func TestMessagesOfToolsAreChecked(t *testing.T) {
	t.Parallel()
	call := func(c port.ToolCall) port.Message {
		return port.Message{Role: "assistant", ToolCalls: []port.ToolCall{c}}
	}
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	for field, m := range map[string]port.Message{
		"":                                     call(port.ToolCall{ID: "c", Name: "f", Arguments: `{"a":1}`}),
		"tool_call_id":                         {Role: "tool", Content: "a"},
		"tool_calls":                           {Role: "user", ToolCalls: []port.ToolCall{{ID: "c", Name: "f"}}},
		"tool_calls.0.id":                      call(port.ToolCall{Name: "f"}),
		"tool_calls.0.function.name":           call(port.ToolCall{ID: "c", Name: "a b"}),
		"tool_calls.0.function.arguments":      call(port.ToolCall{ID: "c", Name: "f", Arguments: `{"a"`}),
		"tool_calls.0.function.arguments deep": call(port.ToolCall{ID: "c", Name: "f", Arguments: deep}),
		"role":                                 {Role: "function", Content: "a"},
	} {
		field, _, _ = strings.Cut(field, " ")
		err := inference.Request{Messages: []port.Message{m}}.Check(port.WorkloadCompletion)
		if f := fault.Of(err); field == "" && err != nil || field != "" && (f == nil || f.Field != "messages.0."+field) {
			t.Errorf("got %v, want a fault of %q", err, field)
		}
	}
	err := inference.Request{Prompt: "a", Options: &port.GenerationOptions{Tools: []port.Tool{{Name: "f"}}}}.Check(port.WorkloadCompletion)
	if f := fault.Of(err); f == nil || f.Field != "tools" {
		t.Errorf("got %v, want tools of a prompt refused", err)
	}
}

// TestEnginesRefuseFeaturesByName sends every feature to every engine: it is one of the engine, or
// refused with its name.
func TestEnginesRefuseFeaturesByName(t *testing.T) {
	t.Parallel()
	one, k, yes := 1.0, 1, true
	object := json.RawMessage(`{"a":1}`)
	for field, o := range map[string]port.GenerationOptions{
		"tools":                       {Tools: []port.Tool{{Name: "f"}}},
		"tool_choice":                 {ToolChoice: port.ToolChoice{Mode: "auto"}},
		"parallel_tool_calls":         {ParallelToolCalls: &yes},
		"response_format.json_object": {Format: port.Format{Type: port.FormatObject}},
		"response_format.json_schema": {Format: port.Format{Type: port.FormatSchema, Schema: object}},
		"frequency_penalty":           {Sampling: port.Sampling{FrequencyPenalty: &one}},
		"presence_penalty":            {Sampling: port.Sampling{PresencePenalty: &one}},
		"repetition_penalty":          {Sampling: port.Sampling{RepetitionPenalty: &one}},
		"min_p":                       {Sampling: port.Sampling{MinP: &one}},
		"top_k":                       {Sampling: port.Sampling{TopK: &k}},
		"logit_bias":                  {Sampling: port.Sampling{LogitBias: map[string]float64{"1": 1}}},
		"reasoning_effort":            {ReasoningEffort: "low"},
		"chat_template_kwargs":        {TemplateKwargs: object},
		"grammar":                     {Extra: map[string]json.RawMessage{"grammar": object}},
	} {
		for _, kind := range platform.EngineKinds() {
			has := contains(inference.EngineFeatures(kind), field) || contains(inference.EngineExtras(kind), field)
			err := inference.Request{Prompt: "a", Options: &o}.CheckEngine(kind)
			want := strings.TrimSuffix(strings.TrimSuffix(field, ".json_object"), ".json_schema")
			if f := fault.Of(err); has != (err == nil) || err != nil && (f.Code != fault.InvalidParams || f.Field != want || !strings.Contains(f.Message, field)) {
				t.Errorf("%s at %s: got %v, want a fault of %s: %t", field, kind, err, want, !has)
			}
		}
	}
}

func contains[T ~string](list []T, name string) bool {
	for _, each := range list {
		if string(each) == name {
			return true
		}
	}
	return false
}

// TestPromptCountsTools compares the estimates of a request with and without tools.
func TestPromptCountsTools(t *testing.T) {
	t.Parallel()
	q := inference.Request{Messages: []port.Message{{Role: "user", Content: "a"}}}
	with := q
	with.Options = &port.GenerationOptions{Tools: []port.Tool{{Name: "f", Parameters: json.RawMessage(fmt.Sprintf(`{"description":%q}`, strings.Repeat("x", 4000)))}}}
	if got := with.PromptTokens() - q.PromptTokens(); got < 1000 {
		t.Errorf("got %d tokens for 4,000 bytes of tools, want at least 1,000", got)
	}
	if got := with.LongestPrompt() - q.LongestPrompt(); got < 16_000 {
		t.Errorf("got a bound of %d tokens for 4,000 bytes of tools, want at least 16,000, because templates indent them", got)
	}
}
