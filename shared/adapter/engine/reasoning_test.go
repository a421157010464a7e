package engine_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/engine"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestReasoningIsSeparated checks the forms in which servers send the reasoning before an
// answer.
func TestReasoningIsSeparated(t *testing.T) {
	t.Parallel()
	for name, delta := range map[string]string{
		"llama-server":        `{"reasoning_content":"why"}`,
		"vLLM":                `{"reasoning":"why"}`,
		"both names":          `{"reasoning":"why","reasoning_content":"why"}`,
		"other values":        `{"reasoning":{"effort":1},"reasoning_content":"why","content":""}`,
		"null content":        `{"role":"assistant","content":null,"reasoning_content":"why"}`,
		"empty content":       `{"content":"","reasoning":"why"}`,
		"null and empty name": `{"content":null,"reasoning":"why","reasoning_content":null}`,
	} {
		e := serve(t, engine.Config{Kind: platform.EngineVLLM}, streamed(fmt.Sprintf("data: {\"choices\":[{\"delta\":%s}]}\n\n", delta)+
			"data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"!\",\"content\":\"so\"},\"finish_reason\":\"stop\"}]}\n\n"))
		var got []port.Piece
		_, err := e.Generate(t.Context(), port.Generation{Model: "tiny", Messages: []port.Message{{Role: "user", Content: "x"}}, MaxTokens: 8}, func(p port.Piece) error {
			got = append(got, p)
			return nil
		})
		if want := []port.Piece{{Text: "why", Reasoning: true}, {Text: "!", Reasoning: true}, {Text: "so"}}; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v (%v), want %+v", name, got, err, want)
		}
	}
}

// TestUsageThatIsNone has invalid usages. The answer is complete, and its usage is not counted.
func TestUsageThatIsNone(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string]port.Usage{
		`{"prompt_tokens":3,"completion_tokens":2}`:                                                      {TokensIn: 3, TokensOut: 2, Counted: true},
		`{"prompt_tokens":3.0,"completion_tokens":2,"completion_tokens_details":{"reasoning_tokens":1}}`: {TokensIn: 3, TokensOut: 2, ReasoningTokens: 1, Counted: true},
		`{"prompt_tokens":3,"completion_tokens":2,"reasoning_tokens":1}`:                                 {TokensIn: 3, TokensOut: 2, ReasoningTokens: 1, Counted: true},
		`{"prompt_tokens":3,"completion_tokens":2,"completion_tokens_details":null}`:                     {TokensIn: 3, TokensOut: 2, Counted: true},
		`{"prompt_tokens":3,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":2}}`:          {TokensIn: 3, CachedTokens: 2, TokensOut: 2, Counted: true},
		`{"prompt_tokens":3,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":-2}}`:         {TokensIn: 3, TokensOut: 2, Counted: true},
		`{"prompt_tokens":-1,"completion_tokens":2}`:                                                     {TokensOut: 1},
		`{"prompt_tokens":3,"completion_tokens":-2}`:                                                     {TokensOut: 1},
		`{"prompt_tokens":3,"completion_tokens":1e400}`:                                                  {TokensOut: 1},
		`{"prompt_tokens":3,"completion_tokens":99999999999999999999}`:                                   {TokensOut: 1},
		`{"prompt_tokens":"many","completion_tokens":2}`:                                                 {TokensOut: 1},
		`{"prompt_tokens":2.5,"completion_tokens":2}`:                                                    {TokensOut: 1},
	} {
		// llama-server sends the usage with the finish reason.
		e := serve(t, engine.Config{Kind: platform.EngineLlamaCpp}, streamed(`data: {"choices":[{"text":"b","finish_reason":"stop"}],"usage":`+usage+"}\n\n"))
		if text, end, err := generate(t.Context(), e); err != nil || text != "b" || end.Usage != want {
			t.Errorf("%s: got %q, %+v (%v), want %+v", usage, text, end.Usage, err, want)
		}
	}
}

// TestFilteredAnswerIsWhole has an engine whose filter ends an answer.
func TestFilteredAnswerIsWhole(t *testing.T) {
	t.Parallel()
	e := serve(t, engine.Config{Kind: platform.EngineVLLM}, streamed(`data: {"choices":[{"text":"b","finish_reason":"content_filter"}]}`+"\n\n"))
	if text, end, err := generate(t.Context(), e); err != nil || text != "b" || end.Finish != port.FinishFilter {
		t.Errorf("got %q, %+v (%v), want b with content_filter", text, end, err)
	}
}
