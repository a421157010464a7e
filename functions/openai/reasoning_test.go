package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/port"
)

// thoughts has the members of a message, or a delta, that are not in the API of OpenAI.
type thoughts struct {
	ReasoningContent string `json:"reasoning_content"`
	Reasoning        string `json:"reasoning"`
}

func thoughtsOf(t *testing.T, raw string) string {
	t.Helper()
	var got thoughts
	if err := json.Unmarshal([]byte(raw), &got); err != nil {
		t.Fatal(err)
	}
	if got.Reasoning != got.ReasoningContent {
		t.Errorf("got %+v, want the same text under both names", got)
	}
	return got.ReasoningContent
}

func reasoned() sdk.ChatCompletionNewParams {
	q := chat(8)
	q.Messages = []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage(mockengine.Reasoning)}
	return q
}

// TestReasoningOfAChat compares a complete answer with a streamed one.
func TestReasoningOfAChat(t *testing.T) {
	t.Parallel()
	s := setup(t)
	whole, err := s.client.Chat.Completions.New(t.Context(), reasoned())
	if err != nil {
		t.Fatal(err)
	}
	message := whole.Choices[0].Message
	reasoning := thoughtsOf(t, message.RawJSON())
	if len(strings.Fields(reasoning)) != 4 || len(strings.Fields(message.Content)) != 4 || strings.Contains(message.Content, reasoning) {
		t.Errorf("got the reasoning %q and the answer %q, want 4 words each", reasoning, message.Content)
	}
	if u := whole.Usage; u.CompletionTokens != 8 || u.CompletionTokensDetails.ReasoningTokens != 4 {
		t.Errorf("got %+v, want 8 tokens, 4 of them reasoning", u)
	}
	stream := s.client.Chat.Completions.NewStreaming(t.Context(), reasoned())
	var thought, text strings.Builder
	for stream.Next() {
		part := stream.Current()
		if len(part.Choices) == 0 {
			if part.Usage.CompletionTokensDetails.ReasoningTokens != 4 {
				t.Errorf("got %+v, want 4 tokens of reasoning", part.Usage)
			}
			continue
		}
		delta := part.Choices[0].Delta
		if more := thoughtsOf(t, delta.RawJSON()); more != "" && text.Len() > 0 {
			t.Errorf("got the reasoning %q after the answer %q, want it before", more, text.String())
		} else {
			thought.WriteString(more)
		}
		text.WriteString(delta.Content)
	}
	if err := stream.Err(); err != nil || thought.String() != reasoning || text.String() != message.Content {
		t.Errorf("got %q and %q (%v), want %q and %q", thought.String(), text.String(), err, reasoning, message.Content)
	}
	again := fmt.Sprintf(`{"model":"mock","max_tokens":2,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":%q,"reasoning_content":%q,"reasoning":null},{"role":"user","content":"b"}]}`, message.Content, reasoning)
	if answer := s.Call(t, http.MethodPost, "/v1/chat/completions", again); answer.Status != http.StatusOK || strings.Contains(answer.Body, "reasoning") {
		t.Errorf("got %d %s for the message of an earlier answer, want an answer", answer.Status, answer.Body)
	}
	plain, err := s.client.Chat.Completions.New(t.Context(), chat(3))
	if err != nil || strings.Contains(plain.RawJSON(), "reasoning") {
		t.Errorf("got %s (%v), want no reasoning", plain.RawJSON(), err)
	}
}

func reasonedResponse() responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: "mock", MaxOutputTokens: param.NewOpt(int64(8)), Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt(mockengine.Reasoning)}}
}

// textsOf returns the reasoning and the answer of a response.
func textsOf(r *responses.Response) (reasoning, answer string) {
	for _, item := range r.Output {
		if item.Type == "reasoning" {
			for _, part := range item.AsReasoning().Content {
				reasoning += part.Text
			}
		}
	}
	return reasoning, r.OutputText()
}

// TestReasoningOfAResponse compares a complete response, its stream, the response read later,
// and the response read from its transcript.
func TestReasoningOfAResponse(t *testing.T) {
	t.Parallel()
	s := setup(t)
	ctx := t.Context()
	whole, err := s.client.Responses.New(ctx, reasonedResponse())
	if err != nil {
		t.Fatal(err)
	}
	reasoning, answer := textsOf(whole)
	if len(whole.Output) != 2 || whole.Output[0].Type != "reasoning" || len(strings.Fields(reasoning)) != 4 || len(strings.Fields(answer)) != 4 || whole.Usage.OutputTokensDetails.ReasoningTokens != 4 {
		t.Errorf("got %s, want a reasoning and a message of 4 words each", whole.RawJSON())
	}
	wantTypes := []string{"response.created", "response.in_progress"}
	for _, kind := range []string{"reasoning_text", "output_text"} {
		wantTypes = append(wantTypes, "response.output_item.added", "response.content_part.added")
		wantTypes = append(wantTypes, slices.Repeat([]string{"response." + kind + ".delta"}, 4)...)
		wantTypes = append(wantTypes, "response."+kind+".done", "response.content_part.done", "response.output_item.done")
	}
	wantTypes = append(wantTypes, "response.incomplete")
	var types []string
	var thought, text strings.Builder
	var last responses.Response
	stream := s.client.Responses.NewStreaming(ctx, reasonedResponse())
	for stream.Next() {
		e := stream.Current()
		types = append(types, e.Type)
		switch e.Type {
		case "response.reasoning_text.delta":
			thought.WriteString(e.Delta)
			if e.OutputIndex != 0 {
				t.Errorf("got %s, want the output index 0", e.RawJSON())
			}
		case "response.output_text.delta":
			text.WriteString(e.Delta)
			if e.OutputIndex != 1 {
				t.Errorf("got %s, want the output index 1", e.RawJSON())
			}
		}
		last = e.Response
	}
	if err := stream.Err(); err != nil || thought.String() != reasoning || text.String() != answer || !slices.Equal(types, wantTypes) {
		t.Errorf("got %q and %q in %v (%v), want %q and %q in %v", thought.String(), text.String(), types, err, reasoning, answer, wantTypes)
	}
	same := func(what string, r *responses.Response, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if a, b := textsOf(r); a != reasoning || b != answer || len(r.Output) != 2 || r.Usage.OutputTokensDetails.ReasoningTokens != 4 {
			t.Errorf("%s: got %s, want %s", what, r.RawJSON(), whole.RawJSON())
		}
	}
	same("last event", &last, nil)
	r := s.Run(t, "inf_"+strings.TrimPrefix(whole.ID, "resp_"))
	for !r.State.Terminal() {
		if err := s.dispatcher.Await(ctx, r); err != nil {
			t.Fatal(err)
		}
		r = s.Run(t, r.TaskID)
	}
	got, err := s.client.Responses.Get(ctx, whole.ID, responses.ResponseGetParams{})
	same("read later", got, err)
	s.Clock.Advance(2 * time.Hour) // the streams of this server expire after one hour
	got, err = s.client.Responses.Get(ctx, whole.ID, responses.ResponseGetParams{})
	same("read from the transcript", got, err)
	again := reasonedResponse()
	again.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
		{OfReasoning: new(got.Output[0].AsReasoning().ToParam())},
		{OfOutputMessage: new(got.Output[1].AsMessage().ToParam())},
		responses.ResponseInputItemParamOfMessage("and now?", "user"),
	}}
	if r, err := s.client.Responses.New(ctx, again); err != nil || len(r.Output) == 0 {
		t.Errorf("got %v, want an answer to the items of an earlier response", err)
	}
}

// TestReasoningIsHidden has responses that are not stored, or deleted.
func TestReasoningIsHidden(t *testing.T) {
	t.Parallel()
	s := setup(t)
	q := reasonedResponse()
	q.Store = param.NewOpt(false)
	unstored, err := s.client.Responses.New(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if reasoning, _ := textsOf(unstored); reasoning == "" {
		t.Errorf("got %s, want its caller to get the reasoning", unstored.RawJSON())
	}
	task := strings.TrimPrefix(unstored.ID, "resp_")
	if r := s.Run(t, "inf_"+task); r.Generation != nil && r.Generation.Trace != "" {
		t.Errorf("got the transcript %s of a response that is not stored, want none", r.Generation.Trace)
	}
	apitest.Decoded[map[string]any](t, s.Stage, http.MethodGet, "/v1/tasks/inf_"+task+"/stream", "", http.StatusNotFound)
}

// TestFilteredAnswer has an engine whose filter ends an answer.
func TestFilteredAnswer(t *testing.T) {
	t.Parallel()
	s := setupPlanned(t, func(port.Generation) mockengine.Course { return mockengine.Course{Finish: port.FinishFilter} })
	whole, err := s.client.Chat.Completions.New(t.Context(), chat(3))
	if err != nil || whole.Choices[0].FinishReason != "content_filter" || len(strings.Fields(whole.Choices[0].Message.Content)) != 3 {
		t.Errorf("got %+v (%v), want 3 words with content_filter", whole, err)
	}
	stream := s.client.Chat.Completions.NewStreaming(t.Context(), chat(3))
	finish := ""
	for stream.Next() {
		for _, c := range stream.Current().Choices {
			finish += c.FinishReason
		}
	}
	if err := stream.Err(); err != nil || finish != "content_filter" {
		t.Errorf("got the end %q (%v), want content_filter", finish, err)
	}
	response, err := s.client.Responses.New(t.Context(), reasonedResponse())
	if err != nil || response.Status != "incomplete" || response.IncompleteDetails.Reason != "content_filter" || response.OutputText() == "" {
		t.Errorf("got %+v (%v), want an incomplete response with its text", response, err)
	}
}
