package port

import (
	"encoding/base64"
	"encoding/json"
)

// Message is one message of a conversation.
type Message struct {
	// Role is "system", "user", "assistant" or "tool".
	Role    string `json:"role"`
	Content string `json:"content"`
	// Parts are texts and images in order, in place of Content; nil for a message without images.
	Parts []ContentPart `json:"parts,omitempty"`
	// ToolCalls are the calls of an assistant's message. Its content can then be empty.
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	// ToolCallID is the call that a message of the role "tool" answers. Name is the name of the
	// tool; it can be empty.
	ToolCallID string `json:"tool_call_id,omitempty"`
	Name       string `json:"name,omitempty"`
}

// ContentPart is a part of a message: a text, or an image.
type ContentPart struct {
	Text  string `json:"text,omitempty"`
	Image *Image `json:"image,omitempty"`
}

// Image is an image of a message. Engines get its bytes: they fetch nothing.
type Image struct {
	// MediaType is that of a Data; empty for an Artifact until it is read.
	MediaType string `json:"mediaType,omitempty"`
	// Data has the bytes, or Artifact is the id of an artifact of the tenant that has them.
	Data     []byte `json:"data,omitempty"`
	Artifact string `json:"artifact,omitempty"`
	// Detail is passed on to the engine; it can be empty.
	Detail string `json:"detail,omitempty"`
}

// URL returns the image as a data URL.
func (i Image) URL() string {
	return "data:" + i.MediaType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
}

// ToolCall is a call of a tool by a model. Arguments is the text that the model has generated,
// normally a JSON object.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// ToolDelta is a part of a call of a tool. Index counts the calls of an answer from 0. The first
// part of a call has the ID and the Name; Arguments of all parts are joined.
type ToolDelta struct {
	Index     int    `json:"index"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
}

// TokenLogprob is the natural logarithm of the probability of a token.
type TokenLogprob struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	// Bytes are the bytes of a token that is no UTF-8; nil for others.
	Bytes []int `json:"bytes,omitempty"`
	// Top are the most likely tokens in the place of the token, the most likely first. They have no
	// Top.
	Top []TokenLogprob `json:"top,omitempty"`
}

// Tool is a function that a model can call.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Parameters is the JSON schema of the arguments; empty for none.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// Strict requires arguments that match the schema, if the engine can enforce it.
	Strict *bool `json:"strict,omitempty"`
}

// The modes of a ToolChoice.
const (
	ToolsNone     = "none"
	ToolsAuto     = "auto"
	ToolsRequired = "required"
	ToolsFunction = "function"
)

// ToolChoice says whether a model calls tools. The zero value is the engine's default.
type ToolChoice struct {
	Mode string `json:"mode,omitempty"`
	// Function is the only tool to call; set with ToolsFunction alone.
	Function string `json:"function,omitempty"`
}

// The types of a Format.
const (
	FormatText   = "text"
	FormatObject = "json_object"
	FormatSchema = "json_schema"
)

// Format is the format of an answer. The zero value is text.
type Format struct {
	Type string `json:"type,omitempty"`
	// Name, Description, Schema and Strict describe a FormatSchema.
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

// Sampling has further parameters of the sampling; nil and empty values are the engine's
// defaults.
type Sampling struct {
	FrequencyPenalty  *float64 `json:"frequencyPenalty,omitempty"`
	PresencePenalty   *float64 `json:"presencePenalty,omitempty"`
	RepetitionPenalty *float64 `json:"repetitionPenalty,omitempty"`
	MinP              *float64 `json:"minP,omitempty"`
	TopK              *int     `json:"topK,omitempty"`
	// LogitBias maps ids of tokens to a value that is added to their logit.
	LogitBias map[string]float64 `json:"logitBias,omitempty"`
}

// GenerationOptions are the parameters of a generation that not every engine has; see
// EngineFeature.
type GenerationOptions struct {
	Tools      []Tool     `json:"tools,omitempty"`
	ToolChoice ToolChoice `json:"toolChoice,omitzero"`
	// ParallelToolCalls permits several calls in one answer; nil is the engine's default.
	ParallelToolCalls *bool    `json:"parallelToolCalls,omitempty"`
	Format            Format   `json:"format,omitzero"`
	Sampling          Sampling `json:"sampling,omitzero"`
	// ReasoningEffort is how much a model reasons, such as "low"; empty is its default.
	ReasoningEffort string `json:"reasoningEffort,omitempty"`
	// TemplateKwargs are arguments of the model's template: a JSON object.
	TemplateKwargs json.RawMessage `json:"templateKwargs,omitempty"`
	// Logprobs requests the probabilities of the tokens of the text, each with this number of the
	// most likely tokens in its place; nil requests none.
	Logprobs *int `json:"logprobs,omitempty"`
	// Extra are members of the engine's own request that are passed on unchanged.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
}

// EngineFeature is an ability that not every engine has. Its name is that of the member of a
// request that uses it.
type EngineFeature string

// The features.
const (
	FeatureMessages          EngineFeature = "messages"
	FeatureTools             EngineFeature = "tools"
	FeatureToolChoice        EngineFeature = "tool_choice"
	FeatureParallelToolCalls EngineFeature = "parallel_tool_calls"
	FeatureObject            EngineFeature = "response_format.json_object"
	FeatureSchema            EngineFeature = "response_format.json_schema"
	FeatureFrequencyPenalty  EngineFeature = "frequency_penalty"
	FeaturePresencePenalty   EngineFeature = "presence_penalty"
	FeatureRepetitionPenalty EngineFeature = "repetition_penalty"
	FeatureMinP              EngineFeature = "min_p"
	FeatureTopK              EngineFeature = "top_k"
	FeatureLogitBias         EngineFeature = "logit_bias"
	FeatureReasoningEffort   EngineFeature = "reasoning_effort"
	FeatureTemplateKwargs    EngineFeature = "chat_template_kwargs"
	FeatureLogprobs          EngineFeature = "logprobs"
	FeatureDimensions        EngineFeature = "dimensions"
	FeatureTokens            EngineFeature = "input_tokens"
	FeatureImages            EngineFeature = "image_url"
)
