package contract

// TaskRequest is the body of POST /v1/tasks. The contract of the data plane has snake_case.
type TaskRequest struct {
	ModelRef  string `json:"model_ref"`
	SessionID string `json:"session_id,omitempty"`
	Engine    string `json:"engine,omitempty"`
	Workload  string `json:"workload,omitempty"`
	// Prompt or Messages are those of a completion, Input the texts of an embedding, or the
	// documents that a rerank compares with Query.
	Prompt   string        `json:"prompt,omitempty"`
	Messages []TaskMessage `json:"messages,omitempty"`
	Input    []string      `json:"input,omitempty"`
	Query    string        `json:"query,omitempty"`
	Ctx      *int          `json:"ctx,omitempty"`
	// MaxTokens is the most tokens to generate, ExpectedTokens what the client expects.
	MaxTokens             *int     `json:"max_tokens,omitempty"`
	ExpectedTokens        *int     `json:"expected_tokens,omitempty"`
	DeadlineMS            *int64   `json:"deadline_ms,omitempty"`
	Priority              string   `json:"priority,omitempty"`
	Stop                  []string `json:"stop,omitempty"`
	Seed                  *Seed    `json:"seed,omitempty"`
	Temperature           *float64 `json:"temperature,omitempty"`
	TopP                  *float64 `json:"top_p,omitempty"`
	SamplerProfileVersion string   `json:"sampler_profile_version,omitempty"`
}

// Seed makes the choice of tokens repeatable. Each integer of 64 bits is another seed, so that
// one that is out of range has no nearest value.
type Seed int64

// TaskMessage is a part of a conversation. Content is nil only in a malformed request.
type TaskMessage struct {
	Role    string  `json:"role"`
	Content *string `json:"content"`
}

// TaskAccepted is what POST /v1/tasks returns.
type TaskAccepted struct {
	TaskID string `json:"task_id"`
	// QueuePosition is the number of tasks ahead in the queue.
	QueuePosition    int   `json:"queue_position"`
	PredictedStartMS int64 `json:"predicted_start_ms"`
}

// InferenceDetails are the part of a Task that tasks of kind inference have.
type InferenceDetails struct {
	Model     string `json:"model"`
	Engine    string `json:"engine"`
	Workload  string `json:"workload"`
	SessionID string `json:"sessionId,omitempty"`
	MaxTokens int    `json:"maxTokens"`
	// Replica and the following are known once an engine has answered.
	Replica       string `json:"replica,omitempty"`
	EngineVersion string `json:"engineVersion,omitempty"`
	TokensIn      *int   `json:"tokensIn,omitempty"`
	TokensOut     *int   `json:"tokensOut,omitempty"`
	DecodeMS      *int64 `json:"decodeMs,omitempty"`
	// ReasoningTokens are those of TokensOut that are reasoning, if the engine counts them.
	ReasoningTokens int    `json:"reasoningTokens,omitempty"`
	FinishReason    string `json:"finishReason,omitempty"`
	// TraceID is the id of the transcript's artifact.
	TraceID string `json:"traceId,omitempty"`
}
