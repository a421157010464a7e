package port

import (
	"context"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// Engine is one replica of an inference server with one model.
//
// Engine is safe for concurrent use. It retries no request. Its faults are:
//
//   - InvalidParams: the engine refuses the request; another replica would too.
//   - ModelUnknown: the engine does not have the model.
//   - PoolUnavailable: the replica does not answer, is loading or has failed; nothing was
//     generated.
//   - ReplicaExhausted: the replica is busy and refuses the request; nothing was generated.
//   - DecodeTimeout: a limit of the request has passed.
//   - WorkerReset: an answer ended without the engine's final event.
//
// When ctx ends, a method closes its request and returns the error of ctx.
type Engine interface {
	// Health reports whether the replica accepts requests now. If the replica does not answer,
	// that is no error: Live is then false.
	Health(ctx context.Context) (EngineHealth, error)
	// Capabilities returns the capabilities that the engine reports. Fields that it does not
	// report are zero.
	Capabilities(ctx context.Context) (EngineCapabilities, error)
	// Load returns the load of the replica, as far as it reports it.
	Load(ctx context.Context) (EngineLoad, error)
	// Generate calls each with the pieces of the answer, in order and one at a time, until the
	// engine's final event, which it returns. An error of each ends the request and is returned.
	// After an error the pieces so far are not an answer.
	Generate(ctx context.Context, g Generation, each func(Piece) error) (GenerationEnd, error)
	// Embed returns one vector for each input, in order. An engine without this workload
	// returns InvalidParams.
	Embed(ctx context.Context, e Embedding) (Embedded, error)
	// Rerank returns a score for each document, in the order of the documents. A larger score
	// means more relevant.
	Rerank(ctx context.Context, r Reranking) (Ranked, error)
}

// Workload is the kind of an inference task.
type Workload string

// The workloads.
const (
	WorkloadCompletion Workload = "completion"
	WorkloadEmbedding  Workload = "embedding"
	WorkloadRerank     Workload = "rerank"
)

// EngineHealth is the state of a replica.
type EngineHealth struct {
	// Live: the server answers. Ready: it accepts requests; a server that loads its model is
	// not ready.
	Live, Ready bool
	// Reason says why the replica is not ready; empty if it is.
	Reason string
}

// EngineCapabilities are the capabilities that an engine reports.
type EngineCapabilities struct {
	Version string
	// Models are the names of the model in requests.
	Models []string
	// ContextTokens is the maximum number of tokens in the prompt and answer of one request.
	ContextTokens int
	// Slots is the number of requests that the replica generates for at the same time.
	Slots int
	// KVTokens is the number of tokens, of prompts and answers, that the replica has memory for
	// at the same time.
	KVTokens  int
	Workloads []Workload
	// Images reports whether the model reads images; nil if it is unknown.
	Images *bool
}

// EngineLoad is the load of a replica. Values that the engine does not report are nil.
type EngineLoad struct {
	Running, Waiting                                 *int
	KVCacheUsageRatio, GPUUtilization, VRAMUsedBytes *float64
}

// Generation is a request for a completion: either a prompt or messages.
type Generation struct {
	// Model is the engine's name of the model; empty if the engine has only one.
	Model string
	// Prompt is the text to continue. Messages are a conversation, to which the engine applies
	// its template. Exactly one of the two is set.
	Prompt   string
	Messages []Message
	// MaxTokens is the maximum number of tokens to generate, at least 1.
	MaxTokens int
	// OpenEnd: the client has set no limit, so MaxTokens is the rest of the context length. It
	// is for engines that do not end at the context length themselves.
	OpenEnd bool
	// Stop lists texts that end the answer. They are not part of it.
	Stop []string
	// Seed makes the sampling repeatable; nil lets the engine choose.
	Seed *int64
	// Temperature and TopP control the sampling; nil means the engine's default.
	Temperature, TopP *float64
	// Options are nil if the request has none.
	Options *GenerationOptions
	Limits  GenerationLimits
}

// GenerationLimits are the maximum times of a request; 0 means no limit.
type GenerationLimits struct {
	// First is the time from the request to the first piece, Gap the time between two pieces,
	// and Total the time from the request to the end.
	First, Gap, Total time.Duration
}

// Piece is a part of an answer: one or more tokens, as sent by the engine.
type Piece struct {
	// Text is valid UTF-8, and not empty unless the piece has Calls.
	Text string
	// Reasoning: the text belongs to the reasoning before the answer. The engine separates the
	// two.
	Reasoning bool
	// Calls are parts of calls of tools, valid until the callback returns. Text is then empty.
	Calls []ToolDelta
	// Logprobs are those of the tokens of a text that is no reasoning, if the request has them.
	Logprobs []TokenLogprob
}

// FieldPrompt is the field of an InvalidParams fault for a prompt that is too long.
const FieldPrompt = "prompt"

// EngineAnswer is the fault of a request that the engine has answered. Status is the HTTP
// status of the response; it is 200 if the engine ended the answer for a reason that is not a
// FinishReason. A fault that is not an EngineAnswer means that the engine did not answer, or
// that the answer broke off.
type EngineAnswer struct {
	*fault.Fault
	Status int
	// RetryAfter is the pause before the next request that the engine has requested; 0 without one.
	RetryAfter time.Duration
}

// Unwrap returns the fault.
func (a EngineAnswer) Unwrap() error { return a.Fault }

// Works reports whether the answer proves that the engine works and only the request is faulty.
func (a EngineAnswer) Works() bool {
	switch a.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return false
	}
	return a.Status < http.StatusInternalServerError
}

// FinishReason is the reason why an engine ended an answer.
type FinishReason string

// FinishStop is the end of the text or a stop text. FinishLength is the limit of tokens or of
// the context. FinishFilter is a filter of the engine that cut off the text. FinishTools is a
// call of a tool.
const (
	FinishStop   FinishReason = "stop"
	FinishLength FinishReason = "length"
	FinishFilter FinishReason = "content_filter"
	FinishTools  FinishReason = "tool_calls"
)

// GenerationEnd is the engine's final event.
type GenerationEnd struct {
	Finish FinishReason
	Usage
}

// Usage is the number of tokens of a request. If the engine does not count tokens, Counted is
// false and TokensOut is the number of pieces.
type Usage struct {
	TokensIn, TokensOut int
	// CachedTokens is the number of tokens in TokensIn that the engine has read from its cache; 0
	// if the engine does not count them.
	CachedTokens int
	// ReasoningTokens is the number of reasoning tokens in TokensOut; 0 if the engine does not
	// count them.
	ReasoningTokens int
	Counted         bool
}

// Embedding is a request for the vectors of the inputs.
type Embedding struct {
	Model string
	// Inputs are texts, or Tokens are inputs as ids of tokens of the model. One of them is set.
	Inputs []string
	Tokens [][]int
	// Dimensions is the length of the vectors; 0 is that of the model.
	Dimensions int
	Limits     GenerationLimits
}

// Count returns the number of inputs.
func (e Embedding) Count() int { return len(e.Inputs) + len(e.Tokens) }

// Embedded is the answer to an Embedding.
type Embedded struct {
	Vectors [][]float64
	Usage
}

// Reranking is a request to score documents by their relevance to a query.
type Reranking struct {
	Model     string
	Query     string
	Documents []string
	Limits    GenerationLimits
}

// Ranked is the answer to a Reranking.
type Ranked struct {
	Scores []float64
	Usage
}

// Check returns an Internal fault if Generate would refuse the request.
func (g Generation) Check() error {
	if (g.Prompt == "") == (len(g.Messages) == 0) {
		return fault.New(fault.Internal, "generation with a prompt of %d bytes and %d messages, want one of them", len(g.Prompt), len(g.Messages))
	}
	if g.MaxTokens < 1 {
		return fault.New(fault.Internal, "maxTokens: got %d, want 1 or more", g.MaxTokens)
	}
	if !utf8.ValidString(g.Prompt) {
		return fault.New(fault.Internal, "the prompt is not valid UTF-8")
	}
	return nil
}
