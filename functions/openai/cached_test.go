package openai_test

import (
	"net/http"
	"strings"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestCachedTokensHaveTheirPrice has an engine that reads two tokens of each prompt from its cache.
// All forms of the usage have them, and the ledger has their price.
func TestCachedTokensHaveTheirPrice(t *testing.T) {
	t.Parallel()
	s := setupPlanned(t, func(port.Generation) mockengine.Course { return mockengine.Course{Cached: 2} })
	ctx, who := t.Context(), port.Identity{Tenant: apitest.Tenant}
	_, _, err := s.System.Models.Create(ctx, who, "mock", catalog.Definition{
		Engines: []platform.EngineKind{platform.EngineMock}, Workloads: catalog.Workloads(), Price: catalog.Price{Input: 100, Cached: new(int64(1)), Output: 1000},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.client.Chat.Completions.New(ctx, chat(3))
	if err != nil {
		t.Fatal(err)
	}
	in := answer.Usage.PromptTokens
	if in <= 2 || answer.Usage.PromptTokensDetails.CachedTokens != 2 {
		t.Errorf("got %+v, want 2 cached tokens of the prompt", answer.Usage)
	}
	a, err := s.System.Budgets.Budget(ctx, who, "tenant")
	if want := 100*(in-2) + 2*1 + 3*1000; err != nil || a.Spent.CostNano != want {
		t.Errorf("got %+v, %v, want a cost of %d", a, err, want)
	}
	q := chat(3)
	q.StreamOptions = sdk.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)}
	stream, cached := s.client.Chat.Completions.NewStreaming(ctx, q), int64(0)
	for stream.Next() {
		cached += stream.Current().Usage.PromptTokensDetails.CachedTokens
	}
	if stream.Err() != nil || cached != 2 {
		t.Errorf("got %d cached tokens in a stream, %v, want 2", cached, stream.Err())
	}
	r, err := s.client.Responses.New(ctx, responses.ResponseNewParams{Model: "mock", MaxOutputTokens: param.NewOpt(int64(3)), Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt("tell me a tale")}})
	if err != nil || r.Usage.InputTokensDetails.CachedTokens != 2 {
		t.Errorf("got %+v, %v, want 2 cached tokens of a response", r, err)
	}
	if end := s.Call(t, http.MethodGet, "/v1/tasks/"+s.task(t)+"/stream", ""); !strings.Contains(end.Body, `"cached_tokens":2`) {
		t.Errorf("got %s, want the cached tokens in the last event", end.Body)
	}
}
