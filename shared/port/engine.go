package port

import (
	"context"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/run"
)

// Engine is one replica of an inference server with one model.
//
// Engine is safe for concurrent use. It repeats no request. Its faults are InvalidParams
// (the engine refuses the request; another replica would too), ModelUnknown,
// PoolUnavailable (the replica does not answer, is loading or has failed; nothing was
// generated), ReplicaExhausted (the replica refuses because it is busy; nothing was
// generated), DecodeTimeout (a limit of the request has passed) and WorkerReset (an
// answer that had begun ended without the engine's final event). When ctx ends, a method
// closes its request and returns the error of ctx.
type Engine interface {
	// Health returns whether the replica takes requests now. A replica that does not
	// answer is not an error, but a health that says so.
	Health(ctx context.Context) (EngineHealth, error)
	// Capabilities returns what the engine says of itself. What it does not report is
	// zero.
	Capabilities(ctx context.Context) (EngineCapabilities, error)
	// Load returns how busy the replica is, as far as it reports that.
	Load(ctx context.Context) (EngineLoad, error)
	// Generate calls each with the pieces of the answer in order, one call at a time,
	// until the engine's final event, which it returns. An error of each ends the
	// request and is returned. The pieces before an error are part of no answer.
	Generate(ctx context.Context, g Generation, each func(Piece) error) (GenerationEnd, error)
	// Embed returns one vector for each input, in order. Unsupported is returned by an
	// engine without this workload, as an InvalidParams.
	Embed(ctx context.Context, e Embedding) (Embedded, error)
	// Rerank returns a score for each document, in the order of the documents; the
	// larger, the more relevant.
	Rerank(ctx context.Context, r Reranking) (Ranked, error)
}

// EngineKind is an inference server that Sortie has an adapter for.
type EngineKind = run.EngineKind

// The engines. EngineMock is for tests and for development.
const (
	EngineLlamaCpp = run.EngineLlamaCpp
	EngineVLLM     = run.EngineVLLM
	EngineTGI      = run.EngineTGI
	EngineTriton   = run.EngineTriton
	EngineMock     = run.EngineMock
)

// EngineKinds lists the engines.
func EngineKinds() []EngineKind { return run.EngineKinds() }

// Workload is what an inference task does.
type Workload string

// The workloads.
const (
	WorkloadCompletion Workload = "completion"
	WorkloadEmbedding  Workload = "embedding"
	WorkloadRerank     Workload = "rerank"
)

// EngineHealth is the state of a replica.
type EngineHealth struct {
	// Live: the server answers. Ready: it takes requests; a loading model is not ready.
	Live, Ready bool
	// Reason is why the replica is not ready, for people; empty if it is.
	Reason string
}

// EngineCapabilities is what an engine says of itself.
type EngineCapabilities struct {
	Version string
	// Models are the names under which requests reach the model.
	Models []string
	// ContextTokens is the longest prompt with its answer, in tokens, of one request.
	ContextTokens int
	// Slots is how many requests the replica generates for at one time.
	Slots     int
	Workloads []Workload
}

// EngineLoad is how busy a replica is. A value that the engine does not report is nil.
type EngineLoad struct {
	Running, Waiting                                 *int
	KVCacheUsageRatio, GPUUtilization, VRAMUsedBytes *float64
}

// Generation is a request for a completion: a prompt, or messages.
type Generation struct {
	// Model is the engine's name of the model; empty for an engine with one.
	Model string
	// Prompt is the text to continue. Messages are a conversation, to which the engine
	// applies its template. One of them is empty.
	Prompt   string
	Messages []Message
	// MaxTokens is the most tokens to generate, at least 1.
	MaxTokens int
	// OpenEnd: the client has set no limit, so that MaxTokens is what the context leaves. It is
	// for engines without an end of their own.
	OpenEnd bool
	// Stop are texts that end the answer, without being part of it.
	Stop []string
	// Seed makes the choice of tokens repeatable; nil leaves it to the engine.
	Seed *int64
	// Temperature and TopP choose among tokens; nil is the engine's default.
	Temperature, TopP *float64
	Limits            GenerationLimits
}

// GenerationLimits are how long an engine may take; 0 is no limit.
type GenerationLimits struct {
	// First is from the request to the first piece, Gap from one to the next, and Total
	// from the request to the end.
	First, Gap, Total time.Duration
}

// Message is a part of a conversation.
type Message struct {
	// Role is "system", "user" or "assistant".
	Role    string
	Content string
}

// Piece is a part of an answer: one or more tokens, as the engine sends them.
type Piece struct {
	// Text is not empty, and valid UTF-8.
	Text string
	// Reasoning: the text is of the reasoning before the answer, which the engine separates
	// from it.
	Reasoning bool
}

// FieldPrompt is the field of an InvalidParams for a prompt that is too long.
const FieldPrompt = "prompt"

// EngineAnswer is the fault of a request that an engine has answered. Status is that of the
// response, 200 for an answer that the engine has ended for a reason that is not one of the
// FinishReasons. A fault outside of an EngineAnswer is of an engine that did not answer, or whose
// answer broke off.
type EngineAnswer struct {
	*fault.Fault
	Status int
}

// Unwrap returns the fault.
func (a EngineAnswer) Unwrap() error { return a.Fault }

// Works reports whether the answer shows that the engine works: the request is at fault.
func (a EngineAnswer) Works() bool {
	switch a.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return false
	}
	return a.Status < http.StatusInternalServerError
}

// FinishReason is why an engine has ended an answer.
type FinishReason string

// FinishStop is the end of the text or a stop text, FinishLength the limit of tokens or
// of the context, and FinishFilter a filter of the engine that has cut the text off.
const (
	FinishStop   FinishReason = "stop"
	FinishLength FinishReason = "length"
	FinishFilter FinishReason = "content_filter"
)

// GenerationEnd is the engine's final event.
type GenerationEnd struct {
	Finish FinishReason
	Usage
}

// Usage is how many tokens a request took. Where the engine does not count, Counted is
// false and TokensOut is the number of pieces.
type Usage struct {
	TokensIn, TokensOut int
	// ReasoningTokens are those of TokensOut that are reasoning; 0 if the engine does not
	// count them.
	ReasoningTokens int
	Counted         bool
}

// Embedding is a request for vectors.
type Embedding struct {
	Model  string
	Inputs []string
	Limits GenerationLimits
}

// Embedded is the answer to an Embedding.
type Embedded struct {
	Vectors [][]float64
	Usage
}

// Reranking is a request to compare documents with a query.
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

// Check returns an Internal fault for a request that Generate refuses.
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
