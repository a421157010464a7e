package contract

import "encoding/json"

// TaskRequest is the body of POST /v1/tasks. The contract of the data plane uses snake_case.
type TaskRequest struct {
	ModelRef  string `json:"model_ref"`
	SessionID string `json:"session_id,omitempty"`
	Engine    string `json:"engine,omitempty"`
	Workload  string `json:"workload,omitempty"`
	// Prompt or Messages are the prompt of a completion. Input contains the texts of an
	// embedding, or the documents that a rerank compares with Query.
	Prompt   string        `json:"prompt,omitempty"`
	Messages []TaskMessage `json:"messages,omitempty"`
	Input    []string      `json:"input,omitempty"`
	// Prompts are several prompts in place of Prompt. N is the number of answers for each of them.
	Prompts []string `json:"prompts,omitempty"`
	N       *int     `json:"n,omitempty"`
	Query   string   `json:"query,omitempty"`
	// InputTokens are the inputs of an embedding as ids of tokens. Dimensions is the length of the
	// vectors.
	InputTokens [][]int `json:"input_tokens,omitempty"`
	Dimensions  *int    `json:"dimensions,omitempty"`
	Ctx         *int    `json:"ctx,omitempty"`
	// MaxTokens is the maximum number of tokens to generate. ExpectedTokens is the number that
	// the client expects.
	MaxTokens      *int     `json:"max_tokens,omitempty"`
	ExpectedTokens *int     `json:"expected_tokens,omitempty"`
	DeadlineMS     *int64   `json:"deadline_ms,omitempty"`
	Priority       string   `json:"priority,omitempty"`
	Stop           []string `json:"stop,omitempty"`
	Seed           *Seed    `json:"seed,omitempty"`
	Temperature    *float64 `json:"temperature,omitempty"`
	TopP           *float64 `json:"top_p,omitempty"`
	// The following members are those of a chat completion.
	Tools              json.RawMessage    `json:"tools,omitempty"`
	ToolChoice         json.RawMessage    `json:"tool_choice,omitempty"`
	ParallelToolCalls  *bool              `json:"parallel_tool_calls,omitempty"`
	ResponseFormat     json.RawMessage    `json:"response_format,omitempty"`
	FrequencyPenalty   *float64           `json:"frequency_penalty,omitempty"`
	PresencePenalty    *float64           `json:"presence_penalty,omitempty"`
	RepetitionPenalty  *float64           `json:"repetition_penalty,omitempty"`
	MinP               *float64           `json:"min_p,omitempty"`
	TopK               *int               `json:"top_k,omitempty"`
	LogitBias          map[string]float64 `json:"logit_bias,omitempty"`
	ReasoningEffort    string             `json:"reasoning_effort,omitempty"`
	ChatTemplateKwargs json.RawMessage    `json:"chat_template_kwargs,omitempty"`
	Logprobs           *bool              `json:"logprobs,omitempty"`
	TopLogprobs        *int               `json:"top_logprobs,omitempty"`
	// EngineOptions are members of the engine's own request.
	EngineOptions         map[string]json.RawMessage `json:"engine_options,omitempty"`
	SamplerProfileVersion string                     `json:"sampler_profile_version,omitempty"`
	// Labels are the labels of the run of the task.
	Labels map[string]string `json:"labels,omitempty"`
}

// Seed makes the choice of tokens repeatable. Each 64-bit integer is a different seed, so a
// value out of range is not rounded to the nearest.
type Seed int64

// TaskMessage is a message of a conversation. Content is nil only in a malformed request.
type TaskMessage struct {
	Role    string  `json:"role"`
	Content *string `json:"content,omitempty"`
	// Images are images behind the content, of a user.
	Images []string `json:"images,omitempty"`
	// ToolCalls are the calls of an assistant, in the form of a chat completion.
	ToolCalls json.RawMessage `json:"tool_calls,omitempty"`
	// ToolCallID is the call that a message of the role tool answers, Name the name of the tool.
	ToolCallID string `json:"tool_call_id,omitempty"`
	Name       string `json:"name,omitempty"`
}

// TaskAccepted is the response of POST /v1/tasks.
type TaskAccepted struct {
	TaskID string `json:"task_id"`
	// QueuePosition is the number of tasks ahead in the queue.
	QueuePosition    int   `json:"queue_position"`
	PredictedStartMS int64 `json:"predicted_start_ms"`
}

// InferenceDetails is the part of a Task of kind inference.
type InferenceDetails struct {
	Model     string `json:"model"`
	Engine    string `json:"engine"`
	Workload  string `json:"workload"`
	SessionID string `json:"sessionId,omitempty"`
	MaxTokens int    `json:"maxTokens"`
	// Replica and the following members are known after an engine has answered.
	Replica       string `json:"replica,omitempty"`
	EngineVersion string `json:"engineVersion,omitempty"`
	TokensIn      *int   `json:"tokensIn,omitempty"`
	TokensOut     *int   `json:"tokensOut,omitempty"`
	DecodeMS      *int64 `json:"decodeMs,omitempty"`
	// CachedTokens is the number of tokens in TokensIn that the engine has read from its cache,
	// ReasoningTokens that of reasoning tokens in TokensOut, if the engine counts them.
	CachedTokens    int    `json:"cachedTokens,omitempty"`
	ReasoningTokens int    `json:"reasoningTokens,omitempty"`
	FinishReason    string `json:"finishReason,omitempty"`
	// TraceID is the id of the artifact with the transcript.
	TraceID string `json:"traceId,omitempty"`
}
