package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/port"
)

// Request is a decoded request.
type Request struct {
	// Model is the id of the model.
	Model    string
	Workload port.Workload
	Ask      inference.Request
	// MaxTokens is the maximum number of tokens to generate; 0 means the rest of the context.
	MaxTokens int
	// MaxTokensField is the member that set MaxTokens; empty means max_tokens.
	MaxTokensField string `json:"-"`
	// Stream requests the answer as Server-Sent Events. Usage requests a last chunk with the
	// usage; it is only set with Stream.
	Stream, Usage bool
	// Within is the deadline; 0 if the body has none.
	Within time.Duration `json:",omitzero"`
	// Unstored: only the caller can read the answer, while it is generated.
	Unstored bool `json:",omitempty"`
	// Base64 requests vectors as Base64 of little-endian 32-bit floats.
	Base64 bool
	// TopN is the number of results of a rerank; 0 is all. ReturnDocuments requests the documents
	// beside their scores.
	TopN            int
	ReturnDocuments bool
}

// sampling contains the members that chat completions and completions share, except those of
// choosing.
type sampling struct {
	Model         string   `json:"model"`
	Temperature   *float64 `json:"temperature"`
	TopP          *float64 `json:"top_p"`
	Stream        bool     `json:"stream"`
	DeadlineMS    *int64   `json:"deadline_ms"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// choosing contains further members of chat completions and completions.
type choosing struct {
	MaxTokens      *int            `json:"max_tokens"`
	N              *int            `json:"n"`
	Stop           json.RawMessage `json:"stop"`
	Seed           *int64          `json:"seed"`
	ResponseFormat *format         `json:"response_format"`
}

func (s sampling) request() (Request, error) {
	within, err := deadline(s.DeadlineMS)
	return Request{
		Model: s.Model, Workload: port.WorkloadCompletion, Ask: inference.Request{Temperature: s.Temperature, TopP: s.TopP},
		Stream: s.Stream, Usage: s.Stream && s.StreamOptions.IncludeUsage, Within: within,
	}, err
}

// apply sets the fields of q and o from the members. It refuses unsupported members with
// InvalidParams, and an empty stop text with InvalidRequest.
func (c choosing) apply(q *Request, o *port.GenerationOptions) (err error) {
	if c.N != nil {
		if *c.N < 1 || *c.N > inference.Answers {
			return unsupported("n", fmt.Sprintf("1 to %d", inference.Answers))
		}
		if *c.N > 1 {
			q.Ask.Choices = *c.N
		}
	}
	if q.MaxTokens, err = mostTokens("max_tokens", c.MaxTokens); err != nil {
		return err
	}
	if o.Format, err = c.ResponseFormat.format("response_format"); err != nil {
		return err
	}
	q.Ask.Seed = c.Seed
	q.Ask.Stop, err = stopTexts(c.Stop)
	return err
}

// stopTexts decodes the member stop. Fault: InvalidRequest with the field.
func stopTexts(value json.RawMessage) ([]string, error) {
	found, err := texts("stop", value)
	if slices.Contains(found, "") {
		return nil, fault.Invalid("stop", "empty text, want at least one character")
	}
	return found, err
}

// mostTokens returns the value of a limit of tokens; 0 if it is not set. Fault: InvalidParams with
// the field if the value is out of range.
func mostTokens(field string, value *int) (int, error) {
	if value == nil {
		return 0, nil
	}
	if *value < 1 || *value > inference.MaxTokens {
		f := fault.New(fault.InvalidParams, "%d is out of range, want 1 to %d", *value, inference.MaxTokens)
		f.Field = field
		return 0, f
	}
	return *value, nil
}

// ignoredInChats are the members of a chat that do not affect the usefulness of the answer:
// names for accounting, and hints for speed.
var ignoredInChats = []string{
	"user", "metadata", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prediction",
	"verbosity",
}

// ParseChat decodes the body of POST /v1/chat/completions. Faults: InvalidRequest and
// InvalidParams with the field.
func ParseChat(body []byte) (Request, error) {
	var in struct {
		sampling
		choosing
		tuning
		tools
		chatOptions
		probabilities

		Messages            json.RawMessage `json:"messages"`
		MaxCompletionTokens *int            `json:"max_completion_tokens"`
		Functions           json.RawMessage `json:"functions"`
		Audio               json.RawMessage `json:"audio"`
		WebSearchOptions    json.RawMessage `json:"web_search_options"`
		FunctionCall        json.RawMessage `json:"function_call"`
		Modalities          []string        `json:"modalities"`
		Store               *bool           `json:"store"`
	}
	members, err := membersIn(body)
	if err != nil {
		return Request{}, err
	}
	options := port.GenerationOptions{Extra: takeExtras(members)}
	if err := parseMembers(members, &in, ignoredInChats...); err != nil {
		return Request{}, err
	}
	q, err := in.request()
	if err != nil {
		return q, err
	}
	if err := in.choosing.apply(&q, &options); err != nil {
		return q, err
	}
	q.Unstored = in.Store != nil && !*in.Store
	err = refuse(
		member{"functions", in.Functions}, member{"audio", in.Audio}, member{"web_search_options", in.WebSearchOptions},
	)
	if err != nil {
		return q, err
	}
	if choice := string(in.FunctionCall); filled(in.FunctionCall) && choice != `"none"` && choice != `"auto"` {
		return q, unsupported("function_call", "tool_choice, with tools in place of functions")
	}
	if err := in.tools.apply(&options); err != nil {
		return q, err
	}
	if slices.ContainsFunc(in.Modalities, func(m string) bool { return m != "text" }) {
		return q, unsupported("modalities", "text alone")
	}
	if in.MaxCompletionTokens != nil {
		if q.MaxTokens, err = mostTokens("max_completion_tokens", in.MaxCompletionTokens); err != nil {
			return q, err
		}
		q.MaxTokensField = "max_completion_tokens"
	}
	in.chatOptions.apply(&options)
	if err := in.probabilities.apply(&options); err != nil {
		return q, err
	}
	options.Sampling = in.tuning.sampling()
	q.Ask.Options = optionsOrNil(options)
	q.Ask.Messages, err = messagesOf(in.Messages)
	return q, err
}

// messagesOf decodes the member messages.
func messagesOf(value json.RawMessage) ([]port.Message, error) {
	list, err := decodeEach[message]("messages", "message", value)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fault.Invalid("messages", "missing messages, want at least one")
	}
	return messages("messages", list)
}

// completionTokens is the default of max_tokens of a text completion.
const completionTokens = 16

// ParseCompletion decodes the body of POST /v1/completions. Faults: InvalidRequest and
// InvalidParams with the field.
func ParseCompletion(body []byte) (Request, error) {
	var in struct {
		sampling
		choosing
		tuning

		Prompt json.RawMessage `json:"prompt"`
		BestOf *int            `json:"best_of"`
		Echo   json.RawMessage `json:"echo"`
		Suffix json.RawMessage `json:"suffix"`
		// Logprobs is the number of the most likely tokens beside each token.
		Logprobs *int `json:"logprobs"`
	}
	members, err := membersIn(body)
	if err != nil {
		return Request{}, err
	}
	options := port.GenerationOptions{Extra: takeExtras(members)}
	if err := parseMembers(members, &in, "user"); err != nil {
		return Request{}, err
	}
	q, err := in.request()
	if err != nil {
		return q, err
	}
	if err := in.apply(&q, &options); err != nil {
		return q, err
	}
	options.Sampling, options.Logprobs = in.tuning.sampling(), in.Logprobs
	q.Ask.Options = optionsOrNil(options)
	if n := in.Logprobs; n != nil && (*n < 0 || *n > inference.TopLogprobs) {
		return q, fault.Invalid("logprobs", "%d is out of range, want 0 to %d", *n, inference.TopLogprobs)
	}
	if n := max(q.Ask.Choices, 1); in.BestOf != nil && *in.BestOf != n {
		return q, unsupported("best_of", fmt.Sprintf("%d, the number of choices", n))
	}
	if err := refuse(member{"echo", in.Echo}, member{"suffix", in.Suffix}); err != nil {
		return q, err
	}
	if in.MaxTokens == nil {
		q.MaxTokens = completionTokens
	}
	prompts, err := texts("prompt", in.Prompt)
	if err != nil {
		return q, err
	}
	if len(prompts) == 0 || slices.Contains(prompts, "") {
		return q, fault.Invalid("prompt", "%d prompts, want at least one, and none that is empty", len(prompts))
	}
	if q.Ask.Prompts = prompts; len(prompts) == 1 {
		q.Ask.Prompt, q.Ask.Prompts = prompts[0], nil
	}
	return q, nil
}

// ParseEmbedding decodes the body of POST /v1/embeddings. Faults: InvalidRequest and
// InvalidParams with the field.
func ParseEmbedding(body []byte) (Request, error) {
	var in struct {
		Model          string          `json:"model"`
		Input          json.RawMessage `json:"input"`
		EncodingFormat *string         `json:"encoding_format"`
		DeadlineMS     *int64          `json:"deadline_ms"`
		Dimensions     *int            `json:"dimensions"`
	}
	if err := parse(body, &in, "user"); err != nil {
		return Request{}, err
	}
	within, err := deadline(in.DeadlineMS)
	q := Request{Model: in.Model, Workload: port.WorkloadEmbedding, Within: within}
	if err != nil {
		return q, err
	}
	if format := in.EncodingFormat; format != nil {
		q.Base64 = *format == "base64"
		if *format != "float" && !q.Base64 {
			return q, unsupported("encoding_format", "float or base64")
		}
	}
	if in.Dimensions != nil {
		if q.Ask.VectorLength = *in.Dimensions; q.Ask.VectorLength == 0 {
			return q, unsupported("dimensions", "1 or more")
		}
	}
	if q.Ask.Tokens = tokensOf(in.Input); q.Ask.Tokens != nil {
		return q, nil
	}
	q.Ask.Input, err = texts("input", in.Input)
	return q, err
}

// tokensOf decodes an array of ids of tokens, or of such arrays. It returns nil for another value.
func tokensOf(value json.RawMessage) [][]int {
	var one []token
	if json.Unmarshal(value, &one) == nil && len(one) > 0 {
		return [][]int{ids(one)}
	}
	var many [][]token
	if json.Unmarshal(value, &many) != nil || len(many) == 0 {
		return nil
	}
	found := make([][]int, len(many))
	for i, each := range many {
		found[i] = ids(each)
	}
	return found
}

// token is the id of a token: an integer, in any form such as 7.0.
type token int

// UnmarshalJSON implements json.Unmarshaler.
func (t *token) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(plainNumber(data), (*int)(t))
}

func ids(of []token) []int {
	found := make([]int, len(of))
	for i, t := range of {
		found[i] = int(t)
	}
	return found
}
