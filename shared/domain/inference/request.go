package inference

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Limits of a request that engines cannot raise, and its defaults.
const (
	// MaxTokens is the maximum of max_tokens.
	MaxTokens = 50000
	// RequestSize is the maximum size of a request in bytes, and so of a prompt. In base64, as API
	// Gateway sends bodies, it fits into the 6 MB that a Lambda function accepts.
	RequestSize = 4 << 20
	// RecordSize is the maximum size of a request in the record of its task, in bytes. A larger one
	// is an object in the bucket.
	RecordSize = 128 << 10
	// Inputs is the maximum number of inputs or documents in a request.
	Inputs = 2048
	// Dimensions is the maximum length of a vector. Its record in the stream is limited.
	Dimensions = 8192
	// DefaultWithin is the default deadline of a request, MostWithin the longest, and MostWaited
	// the longest of a request whose caller waits for the answer.
	DefaultWithin = 5 * time.Minute
	MostWithin    = 24 * time.Hour
	MostWaited    = time.Hour
	// Model is the maximum length of model_ref in bytes, SamplerProfile that of
	// sampler_profile_version in characters.
	Model          = 255
	SamplerProfile = 128
)

// Request is the request to the engine, as stored with the run.
type Request struct {
	Prompt string `json:"prompt,omitempty"`
	// Prompts are several prompts, in place of Prompt. Choices is the number of answers for each
	// prompt; 0 is 1. See Answers.
	Prompts  []string       `json:"prompts,omitempty"`
	Choices  int            `json:"choices,omitempty"`
	Messages []port.Message `json:"messages,omitempty"`
	// Input are the texts of an embedding, or the documents that a rerank compares with Query.
	Input []string `json:"input,omitempty"`
	Query string   `json:"query,omitempty"`
	// Tokens are the inputs of an embedding as ids of tokens, in place of Input. VectorLength is the
	// length of the vectors; 0 is that of the model.
	Tokens       [][]int `json:"tokens,omitempty"`
	VectorLength int     `json:"dimensions,omitempty"`
	// Context is the field ctx: the maximum number of tokens in prompt and answer; 0 means that
	// of the engine.
	Context     int      `json:"ctx,omitempty"`
	Stop        []string `json:"stop,omitempty"`
	Seed        *int64   `json:"seed,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"topP,omitempty"`
	// Options are nil if the request has none.
	Options *port.GenerationOptions `json:"options,omitempty"`
	// Front is data that another API stores with its request for its answers. Engines do not
	// get it.
	Front json.RawMessage `json:"front,omitempty"`
}

// PromptTokens estimates the number of tokens in the prompt, with four bytes of UTF-8 per
// token.
func (q Request) PromptTokens() int { return (q.size() + bytesPerToken - 1) / bytesPerToken }

// bytesPerToken is the estimated size of a token in bytes.
const bytesPerToken = 4

// LongestPrompt returns an upper bound of the tokens that an engine can count for the prompt:
// one token per byte, the query once for each document of a rerank, four per byte of the options,
// which templates indent, and a reserve for the model's template around the messages.
func (q Request) LongestPrompt() int {
	const template, each, indented = 2048, 64, 4
	return q.size() + (indented-1)*sizeOf(q.Options) + len(q.Query)*len(q.Input) + longestImage*q.Images() + (len(q.Messages)+len(q.Input)+len(q.Tokens)+len(q.Prompts))*each + template
}

// size returns the size of the prompt in bytes.
func (q Request) size() int {
	size := len(q.Prompt) + len(q.Query) + sizeOf(q.Options)
	for _, prompt := range q.Prompts {
		size += len(prompt)
	}
	for _, m := range q.Messages {
		size += len(m.Role) + len(m.Content) + len(m.ToolCallID) + len(m.Name) + sizeOfParts(m.Parts) + 8
		for _, c := range m.ToolCalls {
			size += len(c.ID) + len(c.Name) + len(c.Arguments) + 32
		}
	}
	for _, text := range q.Input {
		size += len(text)
	}
	for _, tokens := range q.Tokens {
		size += bytesPerToken * len(tokens)
	}
	return size
}

// sizeOf returns the size of the options that are a part of the prompt, in bytes: tools, a schema
// and the arguments of the template.
func sizeOf(o *port.GenerationOptions) int {
	if o == nil {
		return 0
	}
	size := len(o.TemplateKwargs) + len(o.Format.Description) + len(o.Format.Schema)
	for _, t := range o.Tools {
		size += len(t.Name) + len(t.Description) + len(t.Parameters) + 32
	}
	return size
}

// Fitting returns the number of tokens to request from an engine with a context size, at most
// most. A context of 0 is unknown. Engines refuse requests that they cannot complete. So the
// prompt is estimated with three bytes per token, longer than by PromptTokens.
func (q Request) Fitting(most, context int) int {
	if context == 0 {
		return most
	}
	return max(min(most, context-q.size()/3-16), 1)
}

// Check returns an InvalidRequest fault, with the field, if the request is invalid for the
// workload.
func (q Request) Check(w port.Workload) error {
	switch w {
	case port.WorkloadCompletion:
		return q.checkCompletion()
	case port.WorkloadEmbedding:
		if err := q.checkVectors(); err != nil {
			return err
		}
		if q.Query != "" {
			return fault.Invalid("query", "an embedding has no query, want input alone")
		}
	case port.WorkloadRerank:
		switch {
		case q.Query == "":
			return fault.Invalid("query", "missing query, want the text to compare the documents of input with")
		case len(q.Input) == 0 || len(q.Input) > Inputs:
			return fault.Invalid("input", "%d documents, want 1 to %d", len(q.Input), Inputs)
		}
	default:
		return fault.Invalid("workload", "unknown workload %.40q, want completion, embedding or rerank", w)
	}
	for i, text := range q.Input {
		if text == "" || !utf8.ValidString(text) {
			return fault.Invalid(fmt.Sprintf("input.%d", i), "empty text or no UTF-8, want a text")
		}
	}
	if q.Prompt != "" || len(q.Messages)+len(q.Prompts) > 0 {
		return fault.Invalid("prompt", "%s has no prompt, want input", w)
	}
	if q.Choices > 1 {
		return invalidParams("n", "%s has one answer, want a request without it", w)
	}
	for _, f := range Features(q) {
		if w == port.WorkloadRerank || f != port.FeatureDimensions && f != port.FeatureTokens {
			return invalidParams(fieldOf(f), "%s has no %s, want a request without it", w, f)
		}
	}
	return nil
}

// checkVectors returns the fault of the inputs of an embedding.
func (q Request) checkVectors() error {
	switch n := len(q.Input) + len(q.Tokens); {
	case n == 0 || n > Inputs:
		return fault.Invalid("input", "%d inputs, want 1 to %d texts to embed", n, Inputs)
	case len(q.Input) > 0 && len(q.Tokens) > 0:
		return fault.Invalid("input_tokens", "texts and tokens, want one of them")
	case q.VectorLength < 0 || q.VectorLength > Dimensions:
		return invalidParams("dimensions", "%d is out of range, want 1 to %d", q.VectorLength, Dimensions)
	}
	for i, tokens := range q.Tokens {
		if len(tokens) == 0 {
			return fault.Invalid(fmt.Sprintf("input_tokens.%d", i), "no tokens, want at least one")
		}
		for _, token := range tokens {
			if token < 0 || token > math.MaxInt32 {
				return fault.Invalid(fmt.Sprintf("input_tokens.%d", i), "%d is no id of a token, want 0 to %d", token, math.MaxInt32)
			}
		}
	}
	return nil
}

func (q Request) checkCompletion() error {
	switch {
	case q.Prompt == "" && len(q.Messages)+len(q.Prompts) == 0:
		return fault.Invalid("prompt", "missing prompt, want a prompt or messages")
	case q.Prompt != "" && len(q.Messages) > 0, len(q.Prompts) > 0 && (q.Prompt != "" || len(q.Messages) > 0):
		return fault.Invalid("prompt", "two of a prompt, prompts and messages, want one of them")
	case q.Query != "":
		return fault.Invalid("query", "a completion has no query, want a prompt or messages")
	case len(q.Input)+len(q.Tokens) > 0:
		return fault.Invalid("input", "a completion has no input, want a prompt or messages")
	case q.VectorLength != 0:
		return fault.Invalid("dimensions", "a completion has no vectors")
	case !utf8.ValidString(q.Prompt):
		return fault.Invalid("prompt", "the prompt is no UTF-8")
	case q.Temperature != nil && (*q.Temperature < 0 || *q.Temperature > 2):
		return fault.Invalid("temperature", "%g is out of range, want 0 to 2", *q.Temperature)
	case q.TopP != nil && (*q.TopP < 0 || *q.TopP > 1):
		return fault.Invalid("top_p", "%g is out of range, want 0 to 1", *q.TopP)
	case len(q.Stop) > 16:
		return fault.Invalid("stop", "%d texts, want at most 16", len(q.Stop))
	}
	for i, text := range q.Stop {
		if text == "" || !utf8.ValidString(text) {
			return fault.Invalid(fmt.Sprintf("stop.%d", i), "empty text or no UTF-8, want a text that ends the answer")
		}
	}
	if err := q.checkAnswers(); err != nil {
		return err
	}
	if err := q.checkImages(); err != nil {
		return err
	}
	if err := checkMessages(q.Messages); err != nil {
		return err
	}
	return q.checkOptions()
}
