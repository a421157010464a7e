package engine_test

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/engine"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestEnginesGetTheOptions checks the body that each engine gets for a request with every option
// that it has.
func TestEnginesGetTheOptions(t *testing.T) {
	t.Parallel()
	penalty, minP, topK, parallel, strict, top := 0.5, 0.1, 7, false, true, 2
	schema := json.RawMessage(`{"type":"object","properties":{"__proto__":{"type":"string"}}}`)
	chat := port.Generation{
		Model: "m", MaxTokens: 5,
		Messages: []port.Message{
			{Role: "user", Parts: []port.ContentPart{{Text: "a"}, {Image: &port.Image{MediaType: "image/png", Data: []byte("p"), Detail: "low"}}}},
			{Role: "assistant", ToolCalls: []port.ToolCall{{ID: "c1", Name: "f", Arguments: `{"x":1}`}, {ID: "c2", Name: "g"}}},
			{Role: "tool", ToolCallID: "c1", Name: "f", Content: "r"},
		},
		Options: &port.GenerationOptions{
			Tools:      []port.Tool{{Name: "f", Description: "d", Parameters: schema, Strict: &strict}, {Name: "g"}},
			ToolChoice: port.ToolChoice{Mode: port.ToolsFunction, Function: "f"}, ParallelToolCalls: &parallel,
			Format: port.Format{Type: port.FormatSchema, Schema: schema, Strict: &strict},
			Sampling: port.Sampling{
				FrequencyPenalty: &penalty, PresencePenalty: &penalty, RepetitionPenalty: &penalty, MinP: &minP, TopK: &topK, LogitBias: map[string]float64{"3": -1},
			},
			ReasoningEffort: "none", TemplateKwargs: json.RawMessage(`{"a":1}`), Logprobs: &top,
			Extra: map[string]json.RawMessage{"ignore_eos": json.RawMessage(`true`), "max_tokens": json.RawMessage(`9`)},
		},
	}
	const common = `"model":"m","max_tokens":5,"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true,
		"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,cA==","detail":"low"}}]},
			{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},
				{"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}}]},
			{"role":"tool","content":"r","tool_call_id":"c1","name":"f"}],
		"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"__proto__":{"type":"string"}}},"strict":true}}TOOLS,"parallel_tool_calls":false,
		"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object","properties":{"__proto__":{"type":"string"}}},"strict":true}},
		"frequency_penalty":0.5,"presence_penalty":0.5,"min_p":0.1,"top_k":7,"logit_bias":{"3":-1},"logprobs":true`
	prompt := port.Generation{Prompt: "a", MaxTokens: 5, Options: &port.GenerationOptions{
		Format:   port.Format{Type: port.FormatSchema, Schema: schema},
		Sampling: port.Sampling{FrequencyPenalty: &penalty, RepetitionPenalty: &penalty, TopK: &topK},
		Extra:    map[string]json.RawMessage{"typical_p": json.RawMessage(`0.5`)},
	}}
	for kind, row := range map[platform.EngineKind]struct {
		g    port.Generation
		want string
	}{
		platform.EngineVLLM:     {chat, `{` + strings.Replace(common, "TOOLS", `,{"type":"function","function":{"name":"g"}}],"tool_choice":{"type":"function","function":{"name":"f"}}`, 1) + `,"top_logprobs":3,"repetition_penalty":0.5,"reasoning_effort":"none","chat_template_kwargs":{"a":1}}`},
		platform.EngineLlamaCpp: {chat, `{` + strings.Replace(common, "TOOLS", `],"tool_choice":"required"`, 1) + `,"top_logprobs":2,"repeat_penalty":0.5,"chat_template_kwargs":{"a":1,"reasoning_effort":"none","enable_thinking":false}}`},
		platform.EngineTGI: {prompt, `{"inputs":"a","parameters":{"max_new_tokens":5,"do_sample":true,"details":true,"frequency_penalty":0.5,"repetition_penalty":0.5,
			"top_k":7,"typical_p":0.5,"grammar":{"type":"json","value":{"type":"object","properties":{"__proto__":{"type":"string"}}}}}}`},
	} {
		var body []byte
		e := serve(t, engine.Config{Kind: kind}, func(w http.ResponseWriter, r *http.Request) {
			body, _ = io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
		})
		_, _ = e.Generate(t.Context(), row.g, func(port.Piece) error { return nil })
		var got, want any
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(row.want), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %s, want %s", kind, body, row.want)
		}
		used := inference.Features(inference.Request{Messages: row.g.Messages, Options: row.g.Options})
		for _, f := range inference.EngineFeatures(kind) {
			if !slices.Contains([]port.EngineFeature{port.FeatureObject, port.FeatureTokens, port.FeatureDimensions}, f) && !slices.Contains(used, f) {
				t.Errorf("%s: the request does not use the feature %s", kind, f)
			}
		}
	}
}

// TestEnginesGetTokensToEmbed checks the body of a request for vectors.
func TestEnginesGetTokensToEmbed(t *testing.T) {
	t.Parallel()
	var body []byte
	e := serve(t, engine.Config{Kind: platform.EngineVLLM}, func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, `{"data":[{"index":1,"embedding":[2]},{"index":0,"embedding":[1]}],"usage":{"prompt_tokens":3}}`)
	})
	got, err := e.Embed(t.Context(), port.Embedding{Model: "m", Tokens: [][]int{{1, 2}, {3}}, Dimensions: 1})
	if err != nil || !reflect.DeepEqual(got.Vectors, [][]float64{{1}, {2}}) {
		t.Errorf("got %+v (%v), want two vectors", got, err)
	}
	if want := `{"dimensions":1,"encoding_format":"float","input":[[1,2],[3]],"model":"m"}`; string(body) != want {
		t.Errorf("got %s, want %s", body, want)
	}
}

// TestCallsOfToolsAreRead reads a stream of calls, with the forms of llama-server and vLLM.
func TestCallsOfToolsAreRead(t *testing.T) {
	t.Parallel()
	e := serve(t, engine.Config{Kind: platform.EngineVLLM}, streamed(
		`data: {"choices":[{"delta":{"role":"assistant","content":null}}]}`+"\n\n"+
			`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":""}}]}}]}`+"\n\n"+
			`data: {"choices":[{"delta":{"content":"so","tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}},{"index":0,"function":{"arguments":":1}"}}]}}]}`+"\n\n"+
			`data: {"choices":[{"delta":{"tool_calls":[{"index":1,"id":"c2","function":{"name":"g","arguments":"{}"}},{"index":-1,"id":"no"},{"index":2}]}}]}`+"\n\n"+
			`data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":9}}`+"\n\n"))
	var text string
	var calls []port.ToolDelta
	end, err := e.Generate(t.Context(), port.Generation{Messages: []port.Message{{Role: "user", Content: "x"}}, MaxTokens: 8}, func(p port.Piece) error {
		text += p.Text
		calls = append(calls, p.Calls...)
		return nil
	})
	want := []port.ToolDelta{{ID: "c1", Name: "f"}, {Arguments: `{"x"`}, {Arguments: `:1}`}, {Index: 1, ID: "c2", Name: "g", Arguments: "{}"}}
	if err != nil || end.Finish != port.FinishTools || end.TokensOut != 9 || text != "so" || !reflect.DeepEqual(calls, want) {
		t.Errorf("got %q, %+v and %+v (%v), want %+v", text, calls, end, err, want)
	}
}
