package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/port"
)

// rerankPrefix is the prefix of the ids of rankings.
const rerankPrefix = "rerank-"

// ParseRerank decodes the body of POST /v1/rerank, which has the members of Jina's and Cohere's
// APIs. Faults: InvalidRequest and InvalidParams with the field.
func ParseRerank(body []byte) (Request, error) {
	var in struct {
		Model           string          `json:"model"`
		Query           *string         `json:"query"`
		Documents       json.RawMessage `json:"documents"`
		TopN            *int            `json:"top_n"`
		ReturnDocuments bool            `json:"return_documents"`
		DeadlineMS      *int64          `json:"deadline_ms"`
	}
	if err := parse(body, &in, "user"); err != nil {
		return Request{}, err
	}
	within, err := deadline(in.DeadlineMS)
	q := Request{Model: in.Model, Workload: port.WorkloadRerank, ReturnDocuments: in.ReturnDocuments, Within: within}
	if err != nil {
		return q, err
	}
	if in.Query == nil || *in.Query == "" {
		return q, fault.Invalid("query", "missing query, want the text to compare the documents with")
	}
	q.Ask.Query = *in.Query
	if q.Ask.Input, err = documents(in.Documents); err != nil {
		return q, err
	}
	if in.TopN != nil {
		if q.TopN = *in.TopN; q.TopN < 1 {
			return q, fault.Invalid("top_n", "%d is out of range, want 1 or more", q.TopN)
		}
	}
	return q, nil
}

// documents decodes the member documents: texts, or objects with a text.
func documents(value json.RawMessage) ([]string, error) {
	var elements []json.RawMessage
	if !given(value) || json.Unmarshal(value, &elements) != nil || len(elements) == 0 || len(elements) > inference.Inputs {
		return nil, fault.Invalid("documents", "missing or malformed documents, want an array of 1 to %d texts", inference.Inputs)
	}
	found := make([]string, len(elements))
	for i, element := range elements {
		at := fmt.Sprintf("documents.%d", i)
		if json.Unmarshal(element, &found[i]) != nil {
			var members map[string]json.RawMessage
			if json.Unmarshal(element, &members) != nil {
				return nil, fault.Invalid(at, "malformed document, want a text or an object with a text")
			}
			for _, name := range slices.Sorted(maps.Keys(members)) {
				if name != "text" {
					return nil, unsupported(at+"."+name, "documents of text alone")
				}
			}
			if json.Unmarshal(members["text"], &found[i]) != nil {
				return nil, fault.Invalid(at+".text", "missing or malformed text of a document")
			}
		}
		if found[i] == "" {
			return nil, fault.Invalid(at, "empty document, want a text")
		}
	}
	return found, nil
}

// Ranking is the answer to a request to compare documents with a query, the most relevant first.
type Ranking struct {
	ID      string         `json:"id"`
	Model   string         `json:"model"`
	Results []RankedResult `json:"results"`
	Usage   EmbeddingUsage `json:"usage"`
}

// RankedResult is the score of a document. Index is its place in the request. Document is nil
// unless the request asks for it.
type RankedResult struct {
	Index    int           `json:"index"`
	Score    float64       `json:"relevance_score"`
	Document *RankedSource `json:"document,omitempty"`
}

// RankedSource is a document of the request.
type RankedSource struct {
	Text string `json:"text"`
}

// Ranking returns the scores of an answer that has ended, those of the most relevant documents of
// a request. Documents with the same score have the order of the request.
func (a *Answer) Ranking(h Head, q Request) Ranking {
	is := Ranking{ID: id(rerankPrefix, h.TaskID), Model: h.Model, Results: []RankedResult{}}
	for _, r := range a.results {
		result := RankedResult{Index: r.Index}
		if r.Score != nil {
			result.Score = *r.Score
		}
		if q.ReturnDocuments && r.Index < len(q.Ask.Input) {
			result.Document = &RankedSource{q.Ask.Input[r.Index]}
		}
		is.Results = append(is.Results, result)
	}
	slices.SortStableFunc(is.Results, func(x, y RankedResult) int {
		return cmp.Or(cmp.Compare(y.Score, x.Score), cmp.Compare(x.Index, y.Index))
	})
	if q.TopN > 0 && q.TopN < len(is.Results) {
		is.Results = is.Results[:q.TopN]
	}
	if a.End != nil {
		is.Usage = EmbeddingUsage{PromptTokens: a.End.TokensIn, TotalTokens: a.End.TokensIn}
	}
	return is
}
