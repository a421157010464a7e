package openai_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestVectorsOfTokens embeds texts and ids of tokens, with a length.
func TestVectorsOfTokens(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for name, row := range map[string]struct {
		input sdk.EmbeddingNewParamsInputUnion
		count int
	}{
		"tokens":          {sdk.EmbeddingNewParamsInputUnion{OfArrayOfTokens: []int64{1, 2, 3}}, 1},
		"lists of tokens": {sdk.EmbeddingNewParamsInputUnion{OfArrayOfTokenArrays: [][]int64{{1}, {2, 3}}}, 2},
		"texts":           {sdk.EmbeddingNewParamsInputUnion{OfArrayOfStrings: slices.Repeat([]string{"a"}, 2048)}, 2048},
	} {
		got, err := s.client.Embeddings.New(t.Context(), sdk.EmbeddingNewParams{Model: "mock", Input: row.input, Dimensions: param.NewOpt(int64(100))})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(got.Data) != row.count || len(got.Data[row.count-1].Embedding) != 100 || got.Usage.PromptTokens == 0 {
			t.Errorf("%s: got %d vectors (%v), want %d with 100 numbers", name, len(got.Data), err, row.count)
		}
	}
	for body, field := range map[string]string{
		`"input":[[]]`:                                      "input.0",
		`"input":[1,-2]`:                                    "input.0",
		`"input":[[1],[2147483648]]`:                        "input.1",
		`"input":[]`:                                        "input",
		`"input":[1.5]`:                                     "input",
		`"input":["a",1]`:                                   "input",
		`"input":"a","dimensions":0`:                        "dimensions",
		`"input":"a","dimensions":8193`:                     "dimensions",
		`"input":"a","dimensions":"__proto__"`:              "dimensions",
		`"input":[` + strings.Repeat("[1],", 2048) + `[1]]`: "input",
	} {
		answer := s.Call(t, http.MethodPost, "/v1/embeddings", `{"model":"mock",`+body+`}`)
		if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, `"param":"`+field+`"`) {
			t.Errorf("%.60s: got %d %.200s, want 400 of %s", body, answer.Status, answer.Body, field)
		}
	}
	if answer := s.Call(t, http.MethodPost, "/v1/embeddings", `{"model":"mock","input":[1.0,2e1]}`); answer.Status != http.StatusOK {
		t.Errorf("got %d %.200s, want integers in any form", answer.Status, answer.Body)
	}
	task, _ := apitest.Decoded[contract.TaskAccepted](t, s.Stage, http.MethodPost, "/v1/tasks", `{"model_ref":"mock","workload":"embedding","input_tokens":[[1,2]],"dimensions":2}`, 202)
	if got := s.Call(t, http.MethodGet, fmt.Sprintf("/v1/tasks/%s/stream", task.TaskID), "").Body; strings.Count(got, "event: result") != 1 {
		t.Errorf("got %s, want one vector", got)
	}
	for body, field := range map[string]string{
		`"workload":"rerank","query":"a","input":["a"],"dimensions":2`: "dimensions",
		`"prompt":"a","input_tokens":[[1]]`:                            "input",
		`"workload":"embedding","input":["a"],"input_tokens":[[1]]`:    "input_tokens",
		`"workload":"embedding","input":["a"],"top_k":5`:               "top_k",
	} {
		answer := s.Call(t, http.MethodPost, "/v1/tasks", `{"model_ref":"mock",`+body+`}`)
		if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, `"field":"`+field+`"`) {
			t.Errorf("%s: got %d %.200s, want 400 of %s", body, answer.Status, answer.Body, field)
		}
	}
}
