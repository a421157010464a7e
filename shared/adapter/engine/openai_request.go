package engine

import (
	"encoding/json"
	"maps"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// completion is the body of a request for a completion.
type completion struct {
	Model         string          `json:"model,omitempty"`
	Prompt        string          `json:"prompt,omitempty"`
	Messages      []openaiMessage `json:"messages,omitempty"`
	MaxTokens     int             `json:"max_tokens,omitempty"`
	Stop          []string        `json:"stop,omitempty"`
	Seed          *int64          `json:"seed,omitempty"`
	Temperature   *float64        `json:"temperature,omitempty"`
	TopP          *float64        `json:"top_p,omitempty"`
	Stream        bool            `json:"stream"`
	StreamOptions streamOptions   `json:"stream_options"`

	Tools             []openaiTool       `json:"tools,omitempty"`
	ToolChoice        any                `json:"tool_choice,omitempty"`
	ParallelToolCalls *bool              `json:"parallel_tool_calls,omitempty"`
	ResponseFormat    *openaiFormat      `json:"response_format,omitempty"`
	FrequencyPenalty  *float64           `json:"frequency_penalty,omitempty"`
	PresencePenalty   *float64           `json:"presence_penalty,omitempty"`
	MinP              *float64           `json:"min_p,omitempty"`
	TopK              *int               `json:"top_k,omitempty"`
	LogitBias         map[string]float64 `json:"logit_bias,omitempty"`
	TemplateKwargs    json.RawMessage    `json:"chat_template_kwargs,omitempty"`
	// The engines have different names for it.
	RepetitionPenalty *float64 `json:"repetition_penalty,omitempty"`
	RepeatPenalty     *float64 `json:"repeat_penalty,omitempty"`
	// MaxCompletionTokens replaces MaxTokens for models of services.
	MaxCompletionTokens int `json:"max_completion_tokens,omitempty"`
	// ReasoningEffort is a member of vLLM. llama-server has it in TemplateKwargs.
	ReasoningEffort string `json:"reasoning_effort,omitempty"`
	// Logprobs is true in a request with messages, and the number of TopLogprobs in one with a
	// prompt.
	Logprobs    any  `json:"logprobs,omitempty"`
	TopLogprobs *int `json:"top_logprobs,omitempty"`
}

// openaiMessage is a message. Content is null beside calls of tools.
type openaiMessage struct {
	Role       string       `json:"role"`
	Content    any          `json:"content"`
	ToolCalls  []openaiCall `json:"tool_calls,omitempty"`
	ToolCallID string       `json:"tool_call_id,omitempty"`
	Name       string       `json:"name,omitempty"`
}

// openaiCall is a call of a tool, or a part of one. Index is set in answers alone.
type openaiCall struct {
	Index    *int           `json:"index,omitempty"`
	ID       string         `json:"id,omitempty"`
	Type     string         `json:"type,omitempty"`
	Function openaiFunction `json:"function"`
}

type openaiFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type openaiTool struct {
	Type     string    `json:"type"`
	Function port.Tool `json:"function"`
}

type openaiFormat struct {
	Type   string        `json:"type"`
	Schema *openaiSchema `json:"json_schema,omitempty"`
}

type openaiSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"`
	Strict      *bool           `json:"strict,omitempty"`
}

// completionOf returns the path and the body without the members that only one engine has.
func completionOf(g port.Generation) (string, *completion) {
	body := &completion{
		Model: g.Model, Prompt: g.Prompt, MaxTokens: g.MaxTokens, Stop: g.Stop, Seed: g.Seed,
		Temperature: g.Temperature, TopP: g.TopP, Stream: true, StreamOptions: streamOptions{IncludeUsage: true},
	}
	path := "/v1/completions"
	if len(g.Messages) > 0 {
		path = "/v1/chat/completions"
	}
	for _, m := range g.Messages {
		body.Messages = append(body.Messages, chatMessage(m))
	}
	if o := g.Options; o != nil {
		body.options(*o)
		body.probabilities(o.Logprobs)
	}
	return path, body
}

// probabilities requests probabilities with at least one of the most likely tokens: llama-server
// sends nothing without one.
func (c *completion) probabilities(top *int) {
	if top == nil {
		return
	}
	n := max(*top, 1)
	if c.Logprobs = n; len(c.Messages) > 0 {
		c.Logprobs, c.TopLogprobs = true, &n
	}
}

// openaiPart is a part of the content of a message.
type openaiPart struct {
	Type  string       `json:"type"`
	Text  *string      `json:"text,omitempty"`
	Image *openaiImage `json:"image_url,omitempty"`
}

type openaiImage struct {
	URL    string `json:"url"`
	Detail string `json:"detail,omitempty"`
}

// contentOf returns the content of a message: a text, or parts if it has images.
func contentOf(m port.Message) any {
	if len(m.Parts) == 0 {
		return m.Content
	}
	parts := make([]openaiPart, len(m.Parts))
	for i, p := range m.Parts {
		if parts[i] = (openaiPart{Type: "text", Text: &p.Text}); p.Image != nil {
			parts[i] = openaiPart{Type: "image_url", Image: &openaiImage{p.Image.URL(), p.Image.Detail}}
		}
	}
	return parts
}

// chatMessage returns a message in the engine's format.
func chatMessage(m port.Message) openaiMessage {
	sent := openaiMessage{Role: m.Role, ToolCallID: m.ToolCallID, Name: m.Name}
	if m.Content != "" || len(m.ToolCalls) == 0 {
		sent.Content = contentOf(m)
	}
	for _, c := range m.ToolCalls {
		arguments := c.Arguments
		if arguments == "" {
			arguments = "{}" // templates parse it
		}
		sent.ToolCalls = append(sent.ToolCalls, openaiCall{ID: c.ID, Type: "function", Function: openaiFunction{c.Name, arguments}})
	}
	return sent
}

// options sets the members that llama-server and vLLM share.
func (c *completion) options(o port.GenerationOptions) {
	for _, t := range o.Tools {
		c.Tools = append(c.Tools, openaiTool{"function", t})
	}
	switch choice := o.ToolChoice; choice.Mode {
	case "":
	case port.ToolsFunction:
		c.ToolChoice = map[string]any{"type": "function", "function": map[string]string{"name": choice.Function}}
	default:
		c.ToolChoice = choice.Mode
	}
	switch f := o.Format; f.Type {
	case port.FormatObject:
		c.ResponseFormat = &openaiFormat{Type: f.Type}
	case port.FormatSchema:
		name := f.Name
		if name == "" {
			name = "answer"
		}
		c.ResponseFormat = &openaiFormat{f.Type, &openaiSchema{name, f.Description, f.Schema, f.Strict}}
	}
	c.ParallelToolCalls, c.TemplateKwargs = o.ParallelToolCalls, o.TemplateKwargs
	s := o.Sampling
	c.FrequencyPenalty, c.PresencePenalty, c.MinP, c.TopK, c.LogitBias = s.FrequencyPenalty, s.PresencePenalty, s.MinP, s.TopK, s.LogitBias
}

// withExtra adds members to a body. They do not replace members of the body.
func withExtra(body any, extra map[string]json.RawMessage) (any, error) {
	if len(extra) == 0 {
		return body, nil
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "cannot encode a request to the engine")
	}
	all := maps.Clone(extra)
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fault.Wrap(err, fault.Internal, "cannot encode a request to the engine")
	}
	return all, nil
}

// deltasOf returns the parts of calls in an event, in the memory of an earlier event. A part without
// an index belongs to the first call.
func deltasOf(sent []openaiCall, into []port.ToolDelta) []port.ToolDelta {
	into = into[:0]
	for _, c := range sent {
		d := port.ToolDelta{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments}
		if c.Index != nil {
			d.Index = *c.Index
		}
		if d != (port.ToolDelta{Index: d.Index}) && d.Index >= 0 && d.Index < mostCalls {
			into = append(into, d)
		}
	}
	return into
}

// mostCalls is the largest number of calls in an answer.
const mostCalls = 1024
