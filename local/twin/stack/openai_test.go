package stack_test

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestOpenAIClient runs the official client. A call whose client has disconnected is cancelled
// long before its answer would end, and its slot is free.
func TestOpenAIClient(t *testing.T) {
	t.Parallel()
	answersOpenAI(t, start(t, served{Engines: mocked}))
}

// answersOpenAI runs the official client with the model of a stack's first engine.
func answersOpenAI(t *testing.T, g *target) {
	t.Helper()
	client := sdk.NewClient(option.WithBaseURL(g.Client.URL+"/v1/"), option.WithAPIKey("unused"))
	story := sdk.ChatCompletionNewParams{
		Model: g.Models[0], Messages: []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage("tell a story")},
		MaxCompletionTokens: param.NewOpt(int64(8)), Seed: param.NewOpt(int64(7)),
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
	story.MaxCompletionTokens = param.NewOpt(int64(1900))
	ctx, leave := context.WithCancel(t.Context())
	stream = client.Chat.Completions.NewStreaming(ctx, story)
	for range 3 {
		if !stream.Next() {
			t.Fatalf("got error %v, want parts", stream.Err())
		}
	}
	task := "inf_" + stream.Current().ID[len("chatcmpl-"):]
	leave()
	if state := lastState(g, task); state != string(run.Cancelled) {
		t.Errorf("got the state %s after a disconnect, want %s", state, run.Cancelled)
	}
	if held := outside.Get[contract.PoolHealth](g.Client, "/v1/pools/pool0/health").Held; held != 0 {
		t.Errorf("got %d held slots after a disconnect, want none", held)
	}
}

// TestResponsesAreResumedAfterAKill kills the server during background responses. Readers
// continue after their last sequence number, and each response ends.
func TestResponsesAreResumedAfterAKill(t *testing.T) {
	t.Parallel()
	given := served{Data: t.TempDir(), Engines: mocked}
	first := spawn(t, given)
	clientOf := func(g *target) sdk.Client {
		return sdk.NewClient(option.WithBaseURL(g.Client.URL+"/v1/"), option.WithAPIKey("unused"), option.WithMaxRetries(0))
	}
	const count, tokens = 8, 20
	in := responses.ResponseNewParams{
		Model: "mock", Background: param.NewOpt(true), MaxOutputTokens: param.NewOpt(int64(tokens)),
		Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt("tell a story")},
	}
	ids, seen := make([]string, count), make([][]string, count)
	var reading sync.WaitGroup
	begun := make(chan struct{}, count)
	client := clientOf(first.target)
	for i := range count {
		reading.Go(func() {
			stream := client.Responses.NewStreaming(t.Context(), in)
			for stream.Next() {
				e := stream.Current()
				if seen[i] = append(seen[i], e.RawJSON()); e.SequenceNumber == 0 {
					ids[i] = e.Response.ID
				}
				if len(seen[i]) == min(1+3*i, 10) {
					begun <- struct{}{}
				}
			}
			if len(seen[i]) < min(1+3*i, 10) {
				begun <- struct{}{}
			}
		})
	}
	for range count / 2 {
		<-begun
	}
	first.kill(syscall.SIGKILL)
	reading.Wait()
	client = clientOf(spawn(t, given).target)
	for i, id := range ids {
		if id == "" {
			continue // the server was killed before it accepted this response
		}
		last := ""
		rest := client.Responses.GetStreaming(t.Context(), id, responses.ResponseGetParams{StartingAfter: param.NewOpt(int64(len(seen[i]) - 1))})
		for rest.Next() {
			if e := rest.Current(); e.SequenceNumber != int64(len(seen[i])) {
				t.Fatalf("response %d: got the event %d behind %d", i, e.SequenceNumber, len(seen[i])-1)
			}
			seen[i], last = append(seen[i], rest.Current().RawJSON()), rest.Current().Type
		}
		if rest.Err() != nil {
			t.Fatal(rest.Err())
		}
		if last != "" && last != "response.incomplete" && last != "response.failed" {
			t.Errorf("response %d: got the last event %s, want its end", i, last)
		}
		var whole []string
		for all := client.Responses.GetStreaming(t.Context(), id, responses.ResponseGetParams{}); all.Next(); {
			whole = append(whole, all.Current().RawJSON())
		}
		if !slices.Equal(seen[i], whole) {
			t.Errorf("response %d: got %d events in parts and %d at once", i, len(seen[i]), len(whole))
		}
	}
}
