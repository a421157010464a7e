package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/openai"
)

// TestLogprobsOfChats reads probabilities of a chat, complete and streamed.
func TestLogprobsOfChats(t *testing.T) {
	t.Parallel()
	s := setup(t)
	in := chat(3)
	in.Logprobs, in.TopLogprobs = param.NewOpt(true), param.NewOpt(int64(2))
	whole, err := s.client.Chat.Completions.New(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	joined := func(of []sdk.ChatCompletionTokenLogprob) (text string) {
		for _, p := range of {
			if text += p.Token; p.Logprob >= 0 || len(p.TopLogprobs) != 2 || len(p.Bytes) != len(p.Token) {
				t.Errorf("got %+v, want two tokens in its place", p)
			}
		}
		return text
	}
	if got := joined(whole.Choices[0].Logprobs.Content); got == "" || got != whole.Choices[0].Message.Content {
		t.Errorf("got the tokens %q, want %q", got, whole.Choices[0].Message.Content)
	}
	var all []sdk.ChatCompletionTokenLogprob
	stream := s.client.Chat.Completions.NewStreaming(t.Context(), in)
	for stream.Next() {
		for _, c := range stream.Current().Choices {
			all = append(all, c.Logprobs.Content...)
		}
	}
	if got := joined(all); stream.Err() != nil || got != whole.Choices[0].Message.Content {
		t.Errorf("got the tokens %q (%v), want %q", got, stream.Err(), whole.Choices[0].Message.Content)
	}
	plain, err := s.client.Chat.Completions.New(t.Context(), chat(3))
	if err != nil || !strings.Contains(plain.RawJSON(), `"logprobs":null`) {
		t.Errorf("got %s (%v), want no probabilities", plain.RawJSON(), err)
	}
}

// TestLogprobsOfCompletions reads those of a text, of a task and of the stored answer.
func TestLogprobsOfCompletions(t *testing.T) {
	t.Parallel()
	s := setup(t)
	answer := s.Call(t, http.MethodPost, "/v1/completions", `{"model":"mock","prompt":"a","max_tokens":3,"logprobs":2}`)
	var is openai.Completion
	if err := json.Unmarshal([]byte(answer.Body), &is); err != nil || answer.Status != http.StatusOK {
		t.Fatalf("got %d %s (%v)", answer.Status, answer.Body, err)
	}
	got := is.Choices[0].Logprobs
	if got == nil || strings.Join(got.Tokens, "") != *is.Choices[0].Text || len(got.TokenLogprobs) != 3 || len(got.TopLogprobs[2]) == 0 || !slices.IsSorted(got.TextOffset) || got.TextOffset[1] == 0 {
		t.Errorf("got %s, want three tokens with their places", answer.Body)
	}
	streamed := s.Call(t, http.MethodPost, "/v1/completions", `{"model":"mock","prompt":"a","max_tokens":3,"logprobs":0,"stream":true}`).Body
	if strings.Count(streamed, `"token_logprobs":[-0.25]`) != 3 || !strings.Contains(streamed, fmt.Sprintf(`"text_offset":[%d]`, got.TextOffset[2])) {
		t.Errorf("got %s, want a probability with each token", streamed)
	}
	task, _ := apitest.Decoded[contract.TaskAccepted](t, s.Stage, http.MethodPost, "/v1/tasks", `{"model_ref":"mock","prompt":"a","max_tokens":3,"logprobs":true,"top_logprobs":1}`, 202)
	if got := s.Call(t, http.MethodGet, fmt.Sprintf("/v1/tasks/%s/stream", task.TaskID), "").Body; strings.Count(got, `"logprobs":[{"token":`) != 3 || strings.Count(got, `"top":[`) != 3 {
		t.Errorf("got %s, want a probability with each token", got)
	}
}

// TestLogprobsAreRefused sends malformed members.
func TestLogprobsAreRefused(t *testing.T) {
	t.Parallel()
	s := setup(t)
	const chat, text = `/v1/chat/completions {"model":"mock","messages":[{"role":"user","content":"a"}],`, `/v1/completions {"model":"mock","prompt":"a",`
	const task = `/v1/tasks {"model_ref":"mock","prompt":"a",`
	for request, field := range map[string]string{
		chat + `"top_logprobs":1}`:                  "top_logprobs",
		chat + `"logprobs":false,"top_logprobs":1}`: "top_logprobs",
		chat + `"logprobs":true,"top_logprobs":21}`: "top_logprobs",
		chat + `"logprobs":true,"top_logprobs":-1}`: "top_logprobs",
		chat + `"logprobs":1}`:                      "logprobs",
		text + `"logprobs":21}`:                     "logprobs",
		text + `"logprobs":-1}`:                     "logprobs",
		text + `"logprobs":true}`:                   "logprobs",
		text + `"top_logprobs":1}`:                  "top_logprobs",
		task + `"top_logprobs":1}`:                  "top_logprobs",
		task + `"logprobs":true,"top_logprobs":21}`: "top_logprobs",
		`/v1/tasks {"model_ref":"mock","workload":"embedding","input":["a"],"logprobs":true}`: "logprobs",
	} {
		path, body, _ := strings.Cut(request, " ")
		answer := s.Call(t, http.MethodPost, path, body)
		if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, `"param":"`+field+`"`) && !strings.Contains(answer.Body, `"field":"`+field+`"`) {
			t.Errorf("%s: got %d %s, want the member %s refused", request, answer.Status, answer.Body, field)
		}
	}
}
