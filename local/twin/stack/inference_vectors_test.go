package stack_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// result is the data of an event.
type result struct {
	Index     int       `json:"index"`
	Embedding []float64 `json:"embedding"`
	Score     *float64  `json:"score"`
}

// TestVectorsOfTasks runs an embedding and a rerank. Each has one result per input, in order,
// and an end that charges the prompt. They have no transcript.
func TestVectorsOfTasks(t *testing.T) {
	t.Parallel()
	g := start(t, served{Engines: mocked})
	const price = 100
	if answer := g.Call(http.MethodPatch, "/v1/catalog/models/mock", `{"price": {"input_nanodollars": 100}}`); answer.Status != http.StatusOK {
		t.Fatalf("got %d %s, want 200", answer.Status, answer.Body)
	}
	same := "correspondence 1920"
	for _, row := range []struct {
		request  contract.TaskRequest
		tokensIn int
		check    func(t *testing.T, results []result)
	}{
		{
			contract.TaskRequest{Workload: "embedding", Input: []string{same, "photographs 1931", same}},
			9,
			func(t *testing.T, results []result) {
				first, second, third := results[0], results[1], results[2]
				if len(first.Embedding) == 0 || !slices.Equal(first.Embedding, third.Embedding) || slices.Equal(first.Embedding, second.Embedding) || first.Score != nil {
					t.Errorf("got %+v, want vectors of which the first and the last are equal", results)
				}
			},
		},
		{
			contract.TaskRequest{Workload: "rerank", Query: "letters of the archive", Input: []string{"photographs", "letters of the archive", "correspondence"}},
			18,
			func(t *testing.T, results []result) {
				for i, want := range []float64{0, 1, 0} {
					if got := results[i]; got.Score == nil || *got.Score != want || got.Embedding != nil {
						t.Errorf("got %+v for document %d, want the score %v", got, i, want)
					}
				}
			},
		},
	} {
		t.Run(row.request.Workload, func(t *testing.T) {
			t.Parallel()
			row.request.SessionID = row.request.Workload
			task := g.create(row.request)
			var whole tokens
			whole.read(t.Context(), g.Client, task, 1)
			var results []result
			for i, text := range whole.results {
				r := outside.Decode[result](t, []byte(text))
				if results = append(results, r); r.Index != i {
					t.Errorf("got the result of input %d as number %d", r.Index, i)
				}
			}
			events := strings.ReplaceAll(strings.Join(whole.names, " "), " metrics", "")
			if whole.failed != nil || events != "started result result result end" {
				t.Fatalf("got %v (%v), want started, three results, end", whole.names, whole.failed)
			}
			row.check(t, results)
			var end struct {
				TokensOut int    `json:"tokens_out"`
				TokensIn  int    `json:"tokens_in"`
				Finish    string `json:"finish_reason"`
			}
			if err := json.Unmarshal([]byte(whole.end.Data), &end); err != nil || end.TokensOut != 0 || end.TokensIn != row.tokensIn || end.Finish != "stop" {
				t.Errorf("got end %s, want %d tokens of the prompt and none of an answer", whole.end.Data, row.tokensIn)
			}
			parts := tokens{}
			ctx, leave := context.WithCancel(t.Context())
			parts.at = func(events int) {
				if events == 2 { // after the first result
					leave()
				}
			}
			parts.read(ctx, g.Client, task, 1)
			parts.read(t.Context(), g.Client, task, 1)
			leave()
			if parts.failed != nil || !slices.Equal(parts.names, whole.names) || !slices.Equal(parts.results, whole.results) {
				t.Errorf("got %v in parts (%v), want %v", parts.names, parts.failed, whole.names)
			}
			if state := lastState(g, task); state != string(run.Completed) {
				t.Errorf("got %s, want Completed", state)
			}
			is := outside.Get[contract.Task](g.Client, "/v1/tasks/"+task).Inference
			if is.TraceID != "" || is.Workload != row.request.Workload || is.TokensIn == nil || *is.TokensIn != row.tokensIn || is.FinishReason != "stop" {
				t.Errorf("got %+v, want a %s without a transcript", is, row.request.Workload)
			}
			spent := outside.Get[contract.Budget](g.Client, "/v1/budgets/session:"+row.request.SessionID)
			want := contract.BudgetUse{Turns: 1, Tokens: int64(row.tokensIn), TimeMS: spent.Spent.TimeMS, CostNano: int64(row.tokensIn) * price}
			if spent.Spent != want || spent.Held != (contract.BudgetUse{}) {
				t.Errorf("got %+v held and %+v spent, want %+v", spent.Held, spent.Spent, want)
			}
		})
	}
}
