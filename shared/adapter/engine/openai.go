package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// The paths for embeddings and for reranking.
const (
	embeddingsPath = "/v1/embeddings"
	rerankPath     = "/v1/rerank"
)

// openai is the common part of llama-server and vLLM: OpenAI's paths and bodies.
type openai struct{}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// openaiUsage is the usage of a request. Engines that count the reasoning report it in the
// details, as OpenAI does, or in a member beside them.
type openaiUsage struct {
	PromptTokens     count `json:"prompt_tokens"`
	CompletionTokens count `json:"completion_tokens"`
	PromptDetails    struct {
		CachedTokens count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Details struct {
		ReasoningTokens count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	ReasoningTokens count `json:"reasoning_tokens"`
}

func (u openaiUsage) usage() port.Usage {
	used := usageOf(u.PromptTokens, u.CompletionTokens, cmp.Or(u.Details.ReasoningTokens, u.ReasoningTokens))
	if used.Counted {
		used.CachedTokens = max(int(u.PromptDetails.CachedTokens), 0)
	}
	return used
}

// openaiEvent is an event of a completion's stream. Text belongs to a completion, Delta to a
// conversation. llama-server and older versions of vLLM name the reasoning reasoning_content,
// newer ones reasoning. Some versions send it under both names. Services send the text of a model
// that refuses to follow a schema as Refusal.
type openaiEvent struct {
	Choices []struct {
		Text  string `json:"text"`
		Delta struct {
			Content          string       `json:"content"`
			Refusal          string       `json:"refusal"`
			ReasoningContent thought      `json:"reasoning_content"`
			Reasoning        thought      `json:"reasoning"`
			ToolCalls        []openaiCall `json:"tool_calls"`
		} `json:"delta"`
		Logprobs     *openaiLogprobs `json:"logprobs"`
		FinishReason *string         `json:"finish_reason"`
	} `json:"choices"`
	Usage *openaiUsage `json:"usage"`
	Error *struct {
		Message string          `json:"message"`
		Code    json.RawMessage `json:"code"`
	} `json:"error"`
}

// thought is a piece of reasoning. It is empty for a value that is not a string, because no
// standard defines these members.
type thought string

// UnmarshalJSON implements json.Unmarshaler for every value.
func (t *thought) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*t = thought(text)
	}
	return nil
}

// read reads the text, the finish reason and the usage in any event. llama-server sends the
// reason in a separate event. vLLM sends it with the last token, and the usage in an event
// without choices.
func (openai) read(data []byte, a *answer) error {
	var e openaiEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return fault.Wrap(err, fault.WorkerReset, "the engine sent an unexpected event after %d pieces", a.pieces)
	}
	if e.Error != nil {
		return a.failed(short(e.Error.Message), statusFault(e.Error.Code))
	}
	if len(e.Choices) > 0 {
		choice := e.Choices[0]
		a.text = choice.Text + choice.Delta.Content + choice.Delta.Refusal
		a.calls = deltasOf(choice.Delta.ToolCalls, a.calls)
		if a.top != nil {
			a.logprobs = choice.Logprobs.appendTo(a.logprobs, *a.top)
		}
		a.reasoning = string(cmp.Or(choice.Delta.ReasoningContent, choice.Delta.Reasoning))
		if choice.FinishReason != nil {
			if err := a.end(*choice.FinishReason); err != nil {
				return err
			}
		}
	}
	if e.Usage != nil {
		a.usage = e.Usage.usage()
		a.done = a.finish != ""
	}
	return nil
}

func (openai) vectors() bool { return true }

// statusFault returns the code for an error event's status, which is a number.
func statusFault(status json.RawMessage) fault.Code {
	var number int
	switch err := json.Unmarshal(status, &number); {
	case err != nil:
		return fault.PoolUnavailable
	case number == http.StatusTooManyRequests, number == http.StatusServiceUnavailable:
		return fault.ReplicaExhausted // vLLM detects its full queue after it has begun the response
	case number >= 400 && number < 500:
		return fault.InvalidParams
	}
	return fault.PoolUnavailable
}

// Embed returns the vectors of inputs.
func (e *Engine) Embed(ctx context.Context, request port.Embedding) (port.Embedded, error) {
	if !e.dialect.vectors() {
		return port.Embedded{}, fault.New(fault.InvalidParams, "the engine %s has no embeddings", e.cfg.Kind)
	}
	ctx, watch := watchLimits(ctx, e.cfg.Clock, request.Limits)
	defer watch.stop()
	var got struct {
		Data  []indexedVector `json:"data"`
		Usage openaiUsage     `json:"usage"`
	}
	body := map[string]any{"model": request.Model, "input": request.Inputs, "encoding_format": "float"}
	if len(request.Tokens) > 0 {
		body["input"] = request.Tokens
	}
	if request.Dimensions > 0 {
		body["dimensions"] = request.Dimensions
	}
	err := e.post(ctx, embeddingsPath, body, &got)
	if err != nil {
		return port.Embedded{}, err
	}
	vectors, err := inOrder("vector", request.Count(), got.Data, func(v indexedVector) (int, []float64, bool) {
		return v.Index, v.Embedding, len(v.Embedding) > 0
	})
	return port.Embedded{Vectors: vectors, Usage: got.Usage.usage()}, err
}

type indexedVector struct {
	Index     int       `json:"index"`
	Embedding []float64 `json:"embedding"`
}

type indexedScore struct {
	Index int     `json:"index"`
	Score float64 `json:"relevance_score"`
}

// inOrder returns the answers to want inputs, ordered by index. Fault: WorkerReset unless each
// input has exactly one answer, and that is whole.
func inOrder[A, T any](what string, want int, answers []A, of func(A) (index int, value T, whole bool)) ([]T, error) {
	values, seen := make([]T, want), make([]bool, want)
	for _, a := range answers {
		i, value, whole := of(a)
		if i < 0 || i >= want || seen[i] || !whole {
			return nil, fault.New(fault.WorkerReset, "the engine sent a %s with the unexpected index %d", what, i)
		}
		values[i], seen[i] = value, true
	}
	if len(answers) != want {
		return nil, fault.New(fault.WorkerReset, "the engine sent %d answers with a %s, want %d", len(answers), what, want)
	}
	return values, nil
}

// Rerank returns the scores of documents.
func (e *Engine) Rerank(ctx context.Context, request port.Reranking) (port.Ranked, error) {
	if !e.dialect.vectors() {
		return port.Ranked{}, fault.New(fault.InvalidParams, "the engine %s does not rerank", e.cfg.Kind)
	}
	ctx, watch := watchLimits(ctx, e.cfg.Clock, request.Limits)
	defer watch.stop()
	var got struct {
		Results []indexedScore `json:"results"`
		Usage   openaiUsage    `json:"usage"`
	}
	err := e.post(ctx, rerankPath, map[string]any{"model": request.Model, "query": request.Query, "documents": request.Documents}, &got)
	if err != nil {
		return port.Ranked{}, err
	}
	scores, err := inOrder("score", len(request.Documents), got.Results, func(s indexedScore) (int, float64, bool) { return s.Index, s.Score, true })
	return port.Ranked{Scores: scores, Usage: got.Usage.usage()}, err
}
