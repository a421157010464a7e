package openai

import (
	"encoding/json"
	"slices"

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
	// Base64 requests vectors as Base64 of little-endian 32-bit floats.
	Base64 bool
}

// sampling contains the members that chat completions and completions share, except those of
// choosing.
type sampling struct {
	Model         string   `json:"model"`
	Temperature   *float64 `json:"temperature"`
	TopP          *float64 `json:"top_p"`
	Stream        bool     `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// choosing contains further members of chat completions and completions.
type choosing struct {
	MaxTokens        *int            `json:"max_tokens"`
	N                *int            `json:"n"`
	Stop             json.RawMessage `json:"stop"`
	Seed             *int64          `json:"seed"`
	Logprobs         json.RawMessage `json:"logprobs"`
	LogitBias        json.RawMessage `json:"logit_bias"`
	FrequencyPenalty json.RawMessage `json:"frequency_penalty"`
	PresencePenalty  json.RawMessage `json:"presence_penalty"`
}

func (s sampling) request() Request {
	return Request{
		Model: s.Model, Workload: port.WorkloadCompletion, Ask: inference.Request{Temperature: s.Temperature, TopP: s.TopP},
		Stream: s.Stream, Usage: s.Stream && s.StreamOptions.IncludeUsage,
	}
}

// apply sets the fields of q from the members. It refuses unsupported members with
// InvalidParams, and an empty stop text with InvalidRequest.
func (c choosing) apply(q *Request) (err error) {
	if c.N != nil && *c.N != 1 {
		return unsupported("n", "1")
	}
	err = refuse(
		member{"logprobs", c.Logprobs}, member{"logit_bias", c.LogitBias},
		member{"frequency_penalty", c.FrequencyPenalty}, member{"presence_penalty", c.PresencePenalty},
	)
	if err != nil {
		return err
	}
	if q.MaxTokens, err = mostTokens("max_tokens", c.MaxTokens); err != nil {
		return err
	}
	q.Ask.Seed = c.Seed
	q.Ask.Stop, err = texts("stop", c.Stop)
	if slices.Contains(q.Ask.Stop, "") {
		return fault.Invalid("stop", "empty text, want at least one character")
	}
	return err
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
	"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prediction",
	"parallel_tool_calls", "verbosity",
}

// ParseChat decodes the body of POST /v1/chat/completions. Faults: InvalidRequest and
// InvalidParams with the field.
func ParseChat(body []byte) (Request, error) {
	var in struct {
		sampling
		choosing
		Messages            json.RawMessage `json:"messages"`
		MaxCompletionTokens *int            `json:"max_completion_tokens"`
		TopLogprobs         json.RawMessage `json:"top_logprobs"`
		Tools               json.RawMessage `json:"tools"`
		Functions           json.RawMessage `json:"functions"`
		Audio               json.RawMessage `json:"audio"`
		WebSearchOptions    json.RawMessage `json:"web_search_options"`
		ToolChoice          json.RawMessage `json:"tool_choice"`
		FunctionCall        json.RawMessage `json:"function_call"`
		ReasoningEffort     json.RawMessage `json:"reasoning_effort"`
		Modalities          []string        `json:"modalities"`
		ResponseFormat      *format         `json:"response_format"`
	}
	if err := parse(body, &in, ignoredInChats...); err != nil {
		return Request{}, err
	}
	q := in.request()
	if err := in.apply(&q); err != nil {
		return q, err
	}
	err := refuse(
		member{"top_logprobs", in.TopLogprobs}, member{"tools", in.Tools}, member{"functions", in.Functions}, member{"audio", in.Audio},
		member{"web_search_options", in.WebSearchOptions}, member{"reasoning_effort", in.ReasoningEffort},
	)
	if err == nil {
		err = noChoice(member{"tool_choice", in.ToolChoice}, member{"function_call", in.FunctionCall})
	}
	if err != nil {
		return q, err
	}
	if err := in.ResponseFormat.check("response_format"); err != nil {
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
	list, err := decodeEach[message]("messages", in.Messages)
	if err != nil {
		return q, err
	}
	if len(list) == 0 {
		return q, fault.Invalid("messages", "missing messages, want at least one")
	}
	q.Ask.Messages, err = messages("messages", list)
	return q, err
}

// format is the requested format of an answer. Only the type "text" is supported.
type format struct {
	Type string `json:"type"`
}

func (f *format) check(field string) error {
	switch {
	case f == nil:
		return nil
	case f.Type == "":
		return fault.Invalid(field+".type", "missing type, want text")
	case f.Type != "text":
		return unsupported(field+".type", "text")
	}
	return nil
}

// completionTokens is the default of max_tokens of a text completion.
const completionTokens = 16

// ParseCompletion decodes the body of POST /v1/completions. Faults: InvalidRequest and
// InvalidParams with the field.
func ParseCompletion(body []byte) (Request, error) {
	var in struct {
		sampling
		choosing
		Prompt json.RawMessage `json:"prompt"`
		BestOf *int            `json:"best_of"`
		Echo   json.RawMessage `json:"echo"`
		Suffix json.RawMessage `json:"suffix"`
	}
	if err := parse(body, &in, "user"); err != nil {
		return Request{}, err
	}
	q := in.request()
	if err := in.apply(&q); err != nil {
		return q, err
	}
	if in.BestOf != nil && *in.BestOf != 1 {
		return q, unsupported("best_of", "1")
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
	if len(prompts) != 1 || prompts[0] == "" {
		return q, fault.Invalid("prompt", "%d prompts, want one that is not empty", len(prompts))
	}
	q.Ask.Prompt = prompts[0]
	return q, nil
}

// ParseEmbedding decodes the body of POST /v1/embeddings. Faults: InvalidRequest and
// InvalidParams with the field.
func ParseEmbedding(body []byte) (Request, error) {
	var in struct {
		Model          string          `json:"model"`
		Input          json.RawMessage `json:"input"`
		EncodingFormat *string         `json:"encoding_format"`
		Dimensions     json.RawMessage `json:"dimensions"`
	}
	if err := parse(body, &in, "user"); err != nil {
		return Request{}, err
	}
	q := Request{Model: in.Model, Workload: port.WorkloadEmbedding}
	if format := in.EncodingFormat; format != nil {
		q.Base64 = *format == "base64"
		if *format != "float" && !q.Base64 {
			return q, unsupported("encoding_format", "float or base64")
		}
	}
	if err := refuse(member{"dimensions", in.Dimensions}); err != nil {
		return q, err
	}
	var err error
	q.Ask.Input, err = texts("input", in.Input)
	return q, err
}
