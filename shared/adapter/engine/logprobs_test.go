package engine_test

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/engine"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestLogprobsAreRead reads probabilities in the forms of llama-server and vLLM. A character of two
// tokens has both, reasoning has none.
func TestLogprobsAreRead(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		events []string
		want   [][]port.TokenLogprob
	}{
		"conversation": {
			[]string{
				`{"choices":[{"delta":{"reasoning":"so"},"logprobs":{"content":[{"token":"so","logprob":-9}]}}]}`,
				`{"choices":[{"delta":{"content":""},"logprobs":{"content":[{"token":"\ufffd","logprob":-1,"bytes":[195],"top_logprobs":[{"token":"c","logprob":-3},{"token":"a","logprob":-1,"bytes":[97]},{"token":"b","logprob":-2}]}]}}]}`,
				`{"choices":[{"delta":{"content":"é"},"logprobs":{"content":[{"token":"\ufffd","logprob":-0.5,"bytes":[169],"top_logprobs":[]}]}}]}`,
				`{"choices":[{"delta":{"content":"x"},"logprobs":null}]}`,
			},
			[][]port.TokenLogprob{
				{
					{Token: "\ufffd", Logprob: -1, Bytes: []int{195}, Top: []port.TokenLogprob{{Token: "a", Logprob: -1}, {Token: "b", Logprob: -2}}},
					{Token: "\ufffd", Logprob: -0.5, Bytes: []int{169}},
				},
				nil,
			},
		},
		"completion of vLLM": {
			[]string{
				`{"choices":[{"text":"ab","logprobs":{"tokens":["a","b"],"token_logprobs":[-1,null],"top_logprobs":[{"c":-3,"a":-1,"b":-2},null],"text_offset":[0,1]}}]}`,
			},
			[][]port.TokenLogprob{{{Token: "a", Logprob: -1, Top: []port.TokenLogprob{{Token: "a", Logprob: -1}, {Token: "b", Logprob: -2}}}}},
		},
	} {
		stream := ""
		for _, e := range row.events {
			stream += "data: " + e + "\n\n"
		}
		e := serve(t, engine.Config{Kind: platform.EngineVLLM}, streamed(stream+`data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{}}`+"\n\n"))
		var got [][]port.TokenLogprob
		top := 2
		_, err := e.Generate(t.Context(), port.Generation{Prompt: "a", MaxTokens: 8, Options: &port.GenerationOptions{Logprobs: &top}}, func(p port.Piece) error {
			if !p.Reasoning {
				got = append(got, p.Logprobs)
			}
			return nil
		})
		if err != nil || !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: got %+v (%v), want %+v", name, got, err, row.want)
		}
	}
}

// TestCompletionsAskForLogprobs checks the body of a request with a prompt. llama-server sends nothing
// for zero tokens.
func TestCompletionsAskForLogprobs(t *testing.T) {
	t.Parallel()
	var body []byte
	e := serve(t, engine.Config{Kind: platform.EngineLlamaCpp}, func(_ http.ResponseWriter, r *http.Request) { body, _ = io.ReadAll(r.Body) })
	for _, top := range []int{0, 3} {
		_, _ = e.Generate(t.Context(), port.Generation{Prompt: "a", MaxTokens: 8, Options: &port.GenerationOptions{Logprobs: &top}}, func(port.Piece) error { return nil })
		var got struct{ Logprobs int }
		if err := json.Unmarshal(body, &got); err != nil || got.Logprobs != max(top, 1) || strings.Contains(string(body), "top_logprobs") {
			t.Errorf("got %s (%v), want logprobs of %d", body, err, max(top, 1))
		}
	}
}
