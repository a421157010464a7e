package openai_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/wire/openai"
)

// TestRerank compares documents with a query, and sends requests that are refused.
func TestRerank(t *testing.T) {
	t.Parallel()
	s := setup(t)
	rank := func(members string) (is openai.Ranking) {
		t.Helper()
		answer := s.Call(t, http.MethodPost, "/v1/rerank", `{"model":"mock","query":"letters of the archive",`+members+`}`)
		if err := json.Unmarshal([]byte(answer.Body), &is); answer.Status != http.StatusOK || err != nil {
			t.Fatalf("%s: got %d %s (%v)", members, answer.Status, answer.Body, err)
		}
		return is
	}
	const documents = `"documents":["photographs",{"text":"the archive"},"letters of the archive","a map"]`
	all := rank(documents)
	want := []openai.RankedResult{{Index: 2, Score: 1}, {Index: 1, Score: 0.5}, {Index: 0}, {Index: 3}}
	if diff := cmp.Diff(want, all.Results); diff != "" || !strings.HasPrefix(all.ID, "rerank-") || all.Model != "mock" || all.Usage.TotalTokens == 0 {
		t.Errorf("got %+v, want the best first (-want +got):\n%s", all, diff)
	}
	want = []openai.RankedResult{{Index: 2, Score: 1, Document: &openai.RankedSource{Text: "letters of the archive"}}}
	if diff := cmp.Diff(want, rank(documents+`,"top_n":1,"return_documents":true,"user":"a"`).Results); diff != "" {
		t.Errorf("want the best document (-want +got):\n%s", diff)
	}
	if got := rank(documents + `,"top_n":9,"return_documents":null`).Results; len(got) != 4 {
		t.Errorf("got %d results, want all", len(got))
	}
	for members, field := range map[string]string{
		`"query":"a"`:                                                       "documents",
		`"query":"a","documents":[]`:                                        "documents",
		`"query":"a","documents":"a"`:                                       "documents",
		`"query":"a","documents":[""]`:                                      "documents.0",
		`"query":"a","documents":["a",{"text":""}]`:                         "documents.1",
		`"query":"a","documents":[{"text":1}]`:                              "documents.0.text",
		`"query":"a","documents":[{}]`:                                      "documents.0.text",
		`"query":"a","documents":[1]`:                                       "documents.0",
		`"query":"a","documents":[{"text":"a","image":"http://host/x"}]`:    "documents.0.image",
		`"query":"a","documents":[` + strings.Repeat(`"a",`, 2048) + `"a"]`: "documents",
		`"documents":["a"]`:                                                 "query",
		`"query":"","documents":["a"]`:                                      "query",
		`"query":["a"],"documents":["a"]`:                                   "query",
		`"query":"a","documents":["a"],"top_n":0`:                           "top_n",
		`"query":"a","documents":["a"],"top_n":"1"`:                         "top_n",
		`"query":"a","documents":["a"],"rank_fields":["title"]`:             "rank_fields",
		`"query":"a","documents":["a"],"max_chunks_per_doc":1`:              "max_chunks_per_doc",
		`"query":"a","documents":["a"],"truncate_prompt_tokens":1`:          "truncate_prompt_tokens",
	} {
		answer := s.Call(t, http.MethodPost, "/v1/rerank", `{"model":"mock",`+members+`}`)
		if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, `"param":"`+field+`"`) {
			t.Errorf("%.60s: got %d %.200s, want 400 of %s", members, answer.Status, answer.Body, field)
		}
	}
	if answer := s.Call(t, http.MethodPost, "/v1/rerank", `{"model":"none","query":"a","documents":["a"]}`); answer.Status != http.StatusNotFound || !strings.Contains(answer.Body, "model_not_found") {
		t.Errorf("got %d %s, want 404 model_not_found", answer.Status, answer.Body)
	}
}
