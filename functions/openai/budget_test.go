package openai_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	sdkresponses "github.com/openai/openai-go/v3/responses"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestBudgetForOneTaskServesOneAfterTheOther has a budget for one task at a time. A client that
// has received the end of an answer can send the next request, on each route.
func TestBudgetForOneTaskServesOneAfterTheOther(t *testing.T) {
	t.Parallel()
	const requests = 25
	s := setup(t)
	ctx, client := t.Context(), s.client
	client.Options = append(client.Options, option.WithMaxRetries(0))
	client = sdk.NewClient(client.Options...)
	limit := int64(400_000) // a task holds the 300,000 ms until its deadline
	if _, err := s.System.Budgets.PutBudget(ctx, port.Identity{Tenant: apitest.Tenant}, budget.ScopeTenant, budget.Limit{TimeMS: &limit}); err != nil {
		t.Fatal(err)
	}
	input := sdkresponses.ResponseNewParams{Model: "mock", MaxOutputTokens: param.NewOpt(int64(3)), Input: sdkresponses.ResponseNewParamsInputUnion{OfString: param.NewOpt("tell")}}
	for name, ask := range map[string]func() error{
		"chat": func() error {
			_, err := client.Chat.Completions.New(ctx, chat(3))
			return err
		},
		"streamed chat": func() error {
			stream := client.Chat.Completions.NewStreaming(ctx, chat(3))
			for stream.Next() {
			}
			return stream.Err()
		},
		"embeddings": func() error {
			_, err := client.Embeddings.New(ctx, sdk.EmbeddingNewParams{Model: "mock", Input: sdk.EmbeddingNewParamsInputUnion{OfString: param.NewOpt("a")}})
			return err
		},
		"response": func() error {
			_, err := client.Responses.New(ctx, input)
			return err
		},
		"streamed response": func() error {
			stream := client.Responses.NewStreaming(ctx, input)
			for stream.Next() {
			}
			return stream.Err()
		},
		"response that is polled": func() error {
			background := input
			background.Background = param.NewOpt(true)
			made, err := client.Responses.New(ctx, background)
			for err == nil && (made.Status == sdkresponses.ResponseStatusQueued || made.Status == sdkresponses.ResponseStatusInProgress) {
				made, err = client.Responses.Get(ctx, made.ID, sdkresponses.ResponseGetParams{})
			}
			return err
		},
		"stream of a task": func() error {
			task, _ := apitest.Decoded[contract.TaskAccepted](t, s.Stage, http.MethodPost, "/v1/tasks", `{"model_ref":"mock","prompt":"a","max_tokens":3}`, 202)
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/v1/tasks/"+task.TaskID+"/stream", http.NoBody)
			if err != nil {
				return err
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if !strings.Contains(string(text), "event: end") {
				t.Errorf("got the stream %q, want one with an end", text)
			}
			return err
		},
	} {
		for i := range requests {
			if err := ask(); err != nil {
				t.Errorf("%s, request %d: %v", name, i+1, err)
				break
			}
		}
	}
}
