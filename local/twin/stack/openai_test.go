package stack_test

import (
	"context"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/run"
)

// TestOpenAIClient answers the official client. A call whose client has gone is cancelled
// long before its answer would end, and its slot is free.
func TestOpenAIClient(t *testing.T) {
	t.Parallel()
	g := start(t, served{Engines: mocked})
	client := sdk.NewClient(option.WithBaseURL(g.Client.URL+"/v1/"), option.WithAPIKey("unused"))
	story := sdk.ChatCompletionNewParams{
		Model: "mock", Messages: []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage("tell a story")}, MaxCompletionTokens: param.NewOpt(int64(8)),
	}
	whole, err := client.Chat.Completions.New(t.Context(), story)
	if err != nil || whole.Usage.CompletionTokens != 8 || whole.Choices[0].FinishReason != "length" {
		t.Fatalf("got %+v (%v), want an answer of 8 tokens", whole, err)
	}
	stream := client.Chat.Completions.NewStreaming(t.Context(), story)
	var text string
	for stream.Next() {
		text += stream.Current().Choices[0].Delta.Content
	}
	if stream.Err() != nil || text != whole.Choices[0].Message.Content {
		t.Errorf("got %q (%v) as a stream, want %q", text, stream.Err(), whole.Choices[0].Message.Content)
	}
	story.MaxCompletionTokens = param.NewOpt(int64(20000))
	ctx, leave := context.WithCancel(t.Context())
	stream = client.Chat.Completions.NewStreaming(ctx, story)
	for range 3 {
		if !stream.Next() {
			t.Fatalf("got error %v, want parts", stream.Err())
		}
	}
	task := "inf_" + stream.Current().ID[len("chatcmpl-"):]
	leave()
	if state := await(g, task); state != string(run.Cancelled) {
		t.Errorf("got the state %s after a disconnect, want %s", state, run.Cancelled)
	}
	if held := outside.Get[contract.PoolHealth](g.Client, "/v1/pools/pool0/health").Held; held != 0 {
		t.Errorf("got %d held slots after a disconnect, want none", held)
	}
}
