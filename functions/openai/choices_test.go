package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/openai"
)

// TestSeveralChoices reads the answers of one chat, complete, streamed and stored, with the usage of all.
func TestSeveralChoices(t *testing.T) {
	t.Parallel()
	s := setup(t)
	in := chat(3)
	in.N, in.Seed, in.Logprobs = param.NewOpt(int64(3)), param.NewOpt(int64(7)), param.NewOpt(true)
	whole, err := s.client.Chat.Completions.New(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]bool{}
	for i, c := range whole.Choices {
		if c.Index != int64(i) || c.FinishReason != "length" || c.Message.Content == "" || len(c.Logprobs.Content) != 3 {
			t.Errorf("got %+v as choice %d, want 3 tokens", c, i)
		}
		texts[c.Message.Content] = true
	}
	single, err := s.client.Chat.Completions.New(t.Context(), chat(3))
	if err != nil || len(texts) != 3 || whole.Usage.CompletionTokens != 9 || whole.Usage.PromptTokens != single.Usage.PromptTokens {
		t.Errorf("got %d different texts and the usage %+v (%v), want 3 with 9 tokens and one prompt", len(texts), whole.Usage, err)
	}
	stream := s.client.Chat.Completions.NewStreaming(t.Context(), in)
	var all sdk.ChatCompletionAccumulator
	for stream.Next() {
		all.AddChunk(stream.Current())
	}
	if stream.Err() != nil || len(all.Choices) != 3 || all.Usage.CompletionTokens != 9 {
		t.Fatalf("got %d choices and %+v (%v), want 3", len(all.Choices), all.Usage, stream.Err())
	}
	for i, c := range all.Choices {
		if c.Message.Content != whole.Choices[i].Message.Content || c.FinishReason != "length" {
			t.Errorf("got %+v as choice %d of a stream, want %q", c, i, whole.Choices[i].Message.Content)
		}
	}
	r := s.Run(t, "inf_"+strings.TrimPrefix(whole.ID, "chatcmpl-"))
	s.ended(t)
	if r = s.Run(t, r.TaskID); r.Reservation.Used.Tokens != whole.Usage.CompletionTokens || r.Reserves() {
		t.Errorf("got %+v, want the tokens of all answers charged", r.Reservation)
	}
}

// TestSeveralPrompts has prompts with two answers each, streamed as the events of a task and read from
// its transcript.
func TestSeveralPrompts(t *testing.T) {
	t.Parallel()
	s := setup(t)
	answer := s.Call(t, http.MethodPost, "/v1/completions", `{"model":"mock","prompt":["a","b c"],"n":2,"best_of":2,"seed":1,"max_tokens":2}`)
	var is openai.Completion
	if err := json.Unmarshal([]byte(answer.Body), &is); err != nil || answer.Status != http.StatusOK {
		t.Fatalf("got %d %s (%v)", answer.Status, answer.Body, err)
	}
	if len(is.Choices) != 4 || is.Choices[3].Index != 3 || *is.Choices[0].Text == *is.Choices[2].Text || is.Usage.CompletionTokens != 8 || is.Usage.PromptTokens != 5 {
		t.Errorf("got %s, want four answers to both prompts", answer.Body)
	}
	task, _ := apitest.Decoded[contract.TaskAccepted](t, s.Stage, http.MethodPost, "/v1/tasks", `{"model_ref":"mock","prompts":["a","b"],"max_tokens":2}`, 202)
	events := s.Call(t, http.MethodGet, fmt.Sprintf("/v1/tasks/%s/stream", task.TaskID), "").Body
	if strings.Count(events, "event: token") != 4 || !strings.Contains(events, `data: {"index":0,"finish_reason":"length"}`) || strings.Count(events, "event: choice_end") != 1 {
		t.Errorf("got %s, want two answers with one choice_end", events)
	}
	s.ended(t)
	r := s.Run(t, task.TaskID)
	_, content, err := s.System.Artifacts.Artifact(t.Context(), port.Identity{Tenant: apitest.Tenant}, r.Generation.Trace)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	var kept struct {
		Finishes []string
		Parts    []struct{ Choice int }
	}
	if err := json.NewDecoder(content).Decode(&kept); err != nil || len(kept.Finishes) != 1 || len(kept.Parts) != 2 || kept.Parts[1].Choice != 1 {
		t.Errorf("got %+v (%v), want a transcript of two answers", kept, err)
	}
}

// TestChoicesAreLimited sends numbers out of range, and more tokens than a request may have.
func TestChoicesAreLimited(t *testing.T) {
	t.Parallel()
	s := setup(t)
	const chat, text = `/v1/chat/completions {"model":"mock","messages":[{"role":"user","content":"a"}],`, `/v1/completions {"model":"mock",`
	const task = `/v1/tasks {"model_ref":"mock",`
	for request, field := range map[string]string{
		chat + `"n":0}`:                    "n",
		chat + `"n":17}`:                   "n",
		chat + `"n":16,"max_tokens":3126}`: "max_tokens",
		chat + `"logprobs":true,"top_logprobs":20,"max_tokens":9524}`: "max_tokens",
		text + `"prompt":["a","b","c"],"n":6}`:                        "n",
		text + `"prompt":["a",""]}`:                                   "prompt",
		text + `"prompt":[]}`:                                         "prompt",
		text + `"prompt":"a","n":2,"best_of":3}`:                      "best_of",
		task + `"prompt":"a","n":0}`:                                  "n",
		task + `"prompt":"a","n":-1}`:                                 "n",
		task + `"prompt":"a","prompts":["b"]}`:                        "prompt",
		task + `"prompts":["a",""]}`:                                  "prompts.1",
		task + `"workload":"embedding","input":["a"],"n":2}`:          "n",
		task + `"prompt":"a","n":2,"seed":9223372036854775807}`:       "seed",
	} {
		path, body, _ := strings.Cut(request, " ")
		answer := s.Call(t, http.MethodPost, path, body)
		if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, `"param":"`+field+`"`) && !strings.Contains(answer.Body, `"field":"`+field+`"`) {
			t.Errorf("%s: got %d %s, want the member %s refused", request, answer.Status, answer.Body, field)
		}
	}
}

// TestLogprobsOfResponses reads probabilities of a response, complete and streamed.
func TestLogprobsOfResponses(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for _, row := range []struct {
		members string
		top     int
	}{
		{`"include":["message.output_text.logprobs"]`, 0},
		{`"include":["message.output_text.logprobs"],"top_logprobs":2`, 2},
		{`"top_logprobs":1`, 1},
	} {
		answer := s.Call(t, http.MethodPost, "/v1/responses", `{"model":"mock","input":"a","max_output_tokens":3,`+row.members+`}`)
		var is openai.Response
		if err := json.Unmarshal([]byte(answer.Body), &is); err != nil || answer.Status != http.StatusOK {
			t.Fatalf("got %d %s (%v)", answer.Status, answer.Body, err)
		}
		if got := is.Output[0].Content[0].Logprobs; len(got) != 3 || len(got[0].Top) != row.top {
			t.Errorf("%s: got %s, want three tokens with %d others", row.members, answer.Body, row.top)
		}
		streamed := s.Call(t, http.MethodPost, "/v1/responses", `{"model":"mock","input":"a","stream":true,"max_output_tokens":3,`+row.members+`}`).Body
		if n := strings.Count(streamed, `"delta":`); n != 3 || strings.Count(streamed, `"logprobs":[{"token"`) < 6 {
			t.Errorf("%s: got %s, want each token with its probability", row.members, streamed)
		}
	}
}
