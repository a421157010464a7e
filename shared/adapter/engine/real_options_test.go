//go:build engines

package engine_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/engines/servers"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestRealOptions sends each feature and each member of the engine to a real llama-server and vLLM. The
// answers of their model make no sense, but a grammar gives them their form.
func TestRealOptions(t *testing.T) {
	t.Parallel()
	for _, kind := range []platform.EngineKind{platform.EngineLlamaCpp, platform.EngineVLLM} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			installed := install(t, kind)
			server := startServer(t, installed, servers.Options{Calls: true})
			e, _ := adapt(t, kind, server)
			t.Run("calls", func(t *testing.T) { realCalls(t, e, server) })
			t.Run("formats", func(t *testing.T) { realFormats(t, e, server) })
			t.Run("members", func(t *testing.T) { realMembers(t, kind, e, server) })
			t.Run("reasoning", func(t *testing.T) { realReasoning(t, kind, e, server) })
			t.Run("probabilities", func(t *testing.T) { realProbabilities(t, e, server) })
			t.Run("refusals", func(t *testing.T) { realRefusals(t, e, server) })
		})
	}
}

// realExtras has a value for each member of an engine's own requests.
var realExtras = map[platform.EngineKind]map[string]string{
	platform.EngineLlamaCpp: {
		"cache_prompt": "true", "dry_allowed_length": "2", "dry_base": "1.75", "dry_multiplier": "0.5", "dry_penalty_last_n": "10", "dry_sequence_breakers": `["x"]`,
		"dynatemp_exponent": "1", "dynatemp_range": "0.5", "grammar": `"root ::= \"yes\""`, "ignore_eos": "true", "mirostat": "2", "mirostat_eta": "0.1",
		"mirostat_tau": "5", "repeat_last_n": "10", "samplers": `["top_k","temperature"]`, "top_n_sigma": "1", "typical_p": "0.9", "xtc_probability": "0.1",
		"xtc_threshold": "0.1",
	},
	platform.EngineVLLM: {
		"add_generation_prompt": "true", "add_special_tokens": "true", "allowed_token_ids": "[300,301]", "bad_words": `["x"]`, "continue_final_message": "false",
		"ignore_eos": "true", "include_stop_str_in_output": "true", "length_penalty": "1.5", "min_tokens": "1", "skip_special_tokens": "false",
		"spaces_between_special_tokens": "false", "stop_token_ids": "[5]", "structured_outputs": `{"choice":["yes"]}`,
	},
}

// realReasoning forces the form of reasoning with a grammar.
func realReasoning(t *testing.T, kind platform.EngineKind, e port.Engine, server *servers.Server) {
	name, form := "grammar", `"root ::= \"<think>\" [a-z]{4,9} \"</think>\" [a-z]{3,8}"`
	if kind == platform.EngineVLLM {
		name, form = "structured_outputs", `{"regex":"Here is my thought process:[a-z]{4,9}Here is my response:[a-z]{3,8}"}`
	}
	var parts inference.Parts
	_, err := e.Generate(t.Context(), port.Generation{
		Model: server.Model, Messages: []port.Message{{Role: "user", Content: "cause-reasoning"}}, MaxTokens: 100,
		Options: &port.GenerationOptions{Extra: map[string]json.RawMessage{name: json.RawMessage(form)}},
	}, func(p port.Piece) error {
		parts.Add(p.Text, p.Reasoning)
		return nil
	})
	text, reasoning := parts.Joined(false), parts.Joined(true)
	// Granite's parser sends the first word of the end with the reasoning.
	reasoning = strings.TrimSuffix(reasoning, "Here")
	if err != nil || len(reasoning) < 4 || len(reasoning) > 9 || len(text) < 3 || len(text) > 8 {
		t.Errorf("got the reasoning %q and the text %q (%v), want the lengths of the grammar", reasoning, text, err)
	}
}

// realProbabilities requests the two most likely tokens.
func realProbabilities(t *testing.T, e port.Engine, server *servers.Server) {
	two, tokens := 2, 0
	_, err := e.Generate(t.Context(), port.Generation{
		Model: server.Model, Messages: []port.Message{{Role: "user", Content: "a"}}, MaxTokens: 6, Options: &port.GenerationOptions{Logprobs: &two},
	}, func(p port.Piece) error {
		for _, each := range p.Logprobs {
			if tokens++; each.Logprob > 0 || each.Token == "" && each.Bytes == nil || len(each.Top) < 2 || each.Top[0].Logprob < each.Top[1].Logprob {
				t.Errorf("got %+v, want a token with the two most likely ones", each)
			}
		}
		return nil
	})
	if err != nil || tokens != 6 {
		t.Errorf("got the probabilities of %d tokens (%v), want six", tokens, err)
	}
}

// bounded is a schema whose values are short, so that the answer of a random model ends.
var bounded = json.RawMessage(`{"type":"object","properties":{"city":{"enum":["Rome","Oslo"]},"days":{"type":"boolean"}},"required":["city","days"],"additionalProperties":false}`)

func ask(t *testing.T, e port.Engine, server *servers.Server, more []port.Message, o port.GenerationOptions) (text string, calls []port.ToolCall, end port.GenerationEnd, err error) {
	t.Helper()
	seed := int64(7)
	var parts inference.Parts
	end, err = e.Generate(t.Context(), port.Generation{
		Model: server.Model, Messages: append([]port.Message{{Role: "user", Content: "a"}}, more...), MaxTokens: 300, Seed: &seed, Options: &o,
	}, func(p port.Piece) error {
		parts.Add(p.Text, p.Reasoning)
		for _, d := range p.Calls {
			parts.AddCall(d)
		}
		return nil
	})
	return parts.Joined(false), parts.Calls(), end, err
}

func realCalls(t *testing.T, e port.Engine, server *servers.Server) {
	o := port.GenerationOptions{Tools: []port.Tool{{Name: "weather", Description: "the weather", Parameters: bounded}}, ToolChoice: port.ToolChoice{Mode: port.ToolsRequired}}
	o.Sampling.LogitBias = map[string]float64{servers.TokenTilde: 90, servers.TokenEnd: 100}
	text, calls, end, err := ask(t, e, server, nil, o)
	if err != nil || end.Finish != port.FinishTools || len(calls) == 0 || calls[0].Name != "weather" || !json.Valid([]byte(calls[0].Arguments)) {
		t.Fatalf("got %.80q, %+v, %+v (%v), want a call with JSON", text, calls, end, err)
	}
	chosen := o
	chosen.Tools = append(chosen.Tools, port.Tool{Name: "other", Parameters: bounded})
	chosen.ToolChoice = port.ToolChoice{Mode: port.ToolsFunction, Function: "other"}
	if _, calls, _, err := ask(t, e, server, nil, chosen); err != nil || len(calls) == 0 || calls[0].Name != "other" {
		t.Errorf("got %+v (%v), want a call of the chosen tool", calls, err)
	}
	calls[0].ID = "c1"
	o.ToolChoice.Mode, o.Sampling = port.ToolsNone, port.Sampling{}
	text, calls, _, err = ask(t, e, server, []port.Message{{Role: "assistant", ToolCalls: calls[:1]}, {Role: "tool", ToolCallID: "c1", Content: "sunny"}}, o)
	if err != nil || text == "" || len(calls) > 0 {
		t.Errorf("got %q and %+v (%v), want a text after the result", text, calls, err)
	}
}

func realFormats(t *testing.T, e port.Engine, server *servers.Server) {
	text, _, end, err := ask(t, e, server, nil, port.GenerationOptions{Format: port.Format{Type: port.FormatSchema, Schema: bounded}})
	var got struct {
		City string `json:"city"`
	}
	if err != nil || json.Unmarshal([]byte(text), &got) != nil || got.City == "" {
		t.Errorf("got %q, %+v (%v), want JSON of the schema", text, end, err)
	}
	text, _, _, err = ask(t, e, server, nil, port.GenerationOptions{Format: port.Format{Type: port.FormatObject}})
	if err != nil || !strings.HasPrefix(strings.TrimSpace(text), "{") {
		t.Errorf("got %q (%v), want the start of a JSON object", text, err)
	}
}

// realMembers checks that an engine accepts each member alone.
func realMembers(t *testing.T, kind platform.EngineKind, e port.Engine, server *servers.Server) {
	n, k, yes := 0.5, 5, true
	options := map[string]port.GenerationOptions{
		"parallel_tool_calls":  {Tools: []port.Tool{{Name: "f", Parameters: bounded}}, ParallelToolCalls: &yes},
		"frequency_penalty":    {Sampling: port.Sampling{FrequencyPenalty: &n}},
		"presence_penalty":     {Sampling: port.Sampling{PresencePenalty: &n}},
		"repetition_penalty":   {Sampling: port.Sampling{RepetitionPenalty: &n}},
		"min_p":                {Sampling: port.Sampling{MinP: &n}},
		"top_k":                {Sampling: port.Sampling{TopK: &k}},
		"logit_bias":           {Sampling: port.Sampling{LogitBias: map[string]float64{"5": -100}}},
		"reasoning_effort":     {ReasoningEffort: "none"},
		"chat_template_kwargs": {TemplateKwargs: json.RawMessage(`{"enable_thinking":false}`)},
	}
	for name, value := range realExtras[kind] {
		options[name] = port.GenerationOptions{Extra: map[string]json.RawMessage{name: json.RawMessage(value)}}
	}
	for _, name := range inference.EngineExtras(kind) {
		if options[name].Extra == nil {
			t.Errorf("%s is not tested", name)
		}
	}
	for name, o := range options {
		text, _, _, err := ask(t, e, server, nil, o)
		if err != nil || (name == "grammar" || name == "structured_outputs") && text != "yes" {
			t.Errorf("%s: got %q (%v), want an answer", name, text, err)
		}
	}
}

// realRefusals has values that pass the checks of requests. The engine must refuse them as invalid,
// because another answer would count as a failure of the replica.
func realRefusals(t *testing.T, e port.Engine, server *servers.Server) {
	for name, o := range map[string]port.GenerationOptions{
		"grammar":   {Extra: map[string]json.RawMessage{"grammar": json.RawMessage(`"root ::= ("`)}},
		"grammar 5": {Extra: map[string]json.RawMessage{"grammar": json.RawMessage(`5`)}},
		"samplers":  {Extra: map[string]json.RawMessage{"samplers": json.RawMessage(`{"a":1}`)}},
		"top_k":     {Extra: map[string]json.RawMessage{"typical_p": json.RawMessage(`"a"`)}},
		"pattern":   {Format: port.Format{Type: port.FormatSchema, Schema: json.RawMessage(`{"type":"string","pattern":"("}`)}},
		"ref":       {Format: port.Format{Type: port.FormatSchema, Schema: json.RawMessage(`{"$ref":"#/$defs/a"}`)}},
		"type":      {Format: port.Format{Type: port.FormatSchema, Schema: json.RawMessage(`{"type":"strange"}`)}},
		"required":  {Format: port.Format{Type: port.FormatSchema, Schema: json.RawMessage(`{"type":"object","required":["a"]}`)}},
		"tool":      {Tools: []port.Tool{{Name: "f", Parameters: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/x"}}}`)}}},
		"no schema": {Tools: []port.Tool{{Name: "f"}}, ToolChoice: port.ToolChoice{Mode: port.ToolsRequired}},
		"kwargs":    {TemplateKwargs: json.RawMessage(`{"enable_thinking":"no","a":[1,{"b":null}]}`)},
	} {
		if _, _, _, err := ask(t, e, server, nil, o); err != nil {
			answer, ok := errors.AsType[port.EngineAnswer](err)
			// vLLM has begun its answer before it reads a grammar.
			if t.Logf("%s: %v", name, err); !fault.Is(err, fault.InvalidParams) && (!ok || !answer.Works()) {
				t.Errorf("%s: got %v, want a refusal that is the fault of the request", name, err)
			}
		}
	}
	if _, _, _, err := ask(t, e, server, nil, port.GenerationOptions{}); err != nil {
		t.Errorf("got %v after the refusals, want a server that answers", err)
	}
}
