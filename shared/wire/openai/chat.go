package openai

import (
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/port"
)

// Completion is a chat completion, a text completion, or a chunk of the stream of one.
type Completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []Choice `json:"choices"`
	Usage   *Usage   `json:"usage,omitempty"`
}

// Choice is a choice of a completion. A chat completion has Message, or Delta in a stream. A text completion has Text.
type Choice struct {
	Index   int      `json:"index"`
	Message *Message `json:"message,omitempty"`
	Delta   *Delta   `json:"delta,omitempty"`
	Text    *string  `json:"text,omitempty"`
	// Logprobs is null unless the request has probabilities.
	Logprobs *Logprobs `json:"logprobs"`
	// FinishReason is null in all chunks before the end of the answer.
	FinishReason *string `json:"finish_reason"`
}

// Message is the answer of a chat.
type Message struct {
	thoughts

	Role string `json:"role"`
	// Content is null for calls of tools without a text.
	Content   *string    `json:"content"`
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	// Refusal is always null.
	Refusal *string `json:"refusal"`
}

// Delta is a part of a message.
type Delta struct {
	thoughts

	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
}

// ToolCall is a call of a tool, or a part of one in a stream. Index is set in streams alone; ID,
// Type and the name are empty after the first part.
type ToolCall struct {
	Index    *int         `json:"index,omitempty"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function FunctionCall `json:"function"`
}

// FunctionCall is the name of a function and its arguments, the text of a JSON object.
type FunctionCall struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// thoughts contains the reasoning before an answer; empty if there is no reasoning. OpenAI's API
// has no member for it. Clients of llama-server read reasoning_content, clients of vLLM read
// reasoning.
type thoughts struct {
	ReasoningContent string `json:"reasoning_content,omitempty"`
	Reasoning        string `json:"reasoning,omitempty"`
}

// Form is a format of completions: the prefix of their ids and their object types.
type Form struct{ prefix, object, chunk string }

// The forms: chat completions and text completions.
var (
	FormChat = Form{"chatcmpl-", "chat.completion", "chat.completion.chunk"}
	FormText = Form{"cmpl-", "text_completion", "text_completion"}
)

func (f Form) chat() bool { return f == FormChat }

func (f Form) completion(h Head, object string) Completion {
	return Completion{ID: id(f.prefix, h.TaskID), Object: object, Created: h.Created.Unix(), Model: h.Model, Choices: []Choice{}}
}

// Completion returns the completion of an answer that has ended.
func (f Form) Completion(h Head, a *Answer) Completion {
	c := f.completion(h, f.object)
	reasons := a.parts.Finishes()
	for i := range len(reasons) + 1 {
		reason := finish(a.End)
		if i < len(reasons) {
			reason = &reasons[i]
		}
		c.Choices = append(c.Choices, f.choice(a.parts.Of(i), i, reason))
	}
	c.Usage = usageOf(a.End)
	return c
}

// choice returns a choice, with the parts of its answer.
func (f Form) choice(of *inference.Parts, index int, reason *string) Choice {
	choice := Choice{Index: index, FinishReason: reason, Logprobs: f.logprobs(of.Logprobs(), 0)}
	if text := of.Joined(false); f.chat() {
		reasoning := of.Joined(true)
		choice.Message = &Message{Role: "assistant", Content: &text, thoughts: thoughts{reasoning, reasoning}}
		for _, call := range of.Calls() {
			choice.Message.ToolCalls = append(choice.Message.ToolCalls, ToolCall{ID: call.ID, Type: typeFunction, Function: FunctionCall{call.Name, call.Arguments}})
		}
		if text == "" && choice.Message.ToolCalls != nil {
			choice.Message.Content = nil
		}
	} else {
		choice.Text = &text
	}
	return choice
}

// Chunks converts the events of a task to the chunks of a stream.
type Chunks struct {
	form  Form
	head  Head
	usage bool
	// begun: the current choice has begun. choice is its index.
	begun  bool
	choice int
	// offset is the length of its text so far, in characters.
	offset int
}

// NewChunks returns a Chunks for one answer. With usage, the last chunk has the usage.
func NewChunks(f Form, h Head, usage bool) *Chunks { return &Chunks{form: f, head: h, usage: usage} }

// Add returns the chunks of an event. The caller adds events in the order of the stream. A
// failure has no chunks; see Error.
func (c *Chunks) Add(e inference.Event) (parts []Completion) {
	switch data := e.Data.(type) {
	case inference.Token:
		part := c.part(data.T, nil)
		part.Choices[0].Logprobs = c.form.logprobs(data.Logprobs, c.offset)
		c.offset += utf8.RuneCountInString(data.T)
		parts = append(c.begin(), part)
	case inference.Reasoning:
		if c.form.chat() { // a text completion has no member for it
			parts = append(c.begin(), c.thought(data.T))
		}
	case port.ToolDelta:
		if c.form.chat() {
			parts = append(c.begin(), c.call(data))
		}
	case *inference.ChoiceEnd:
		parts = append(c.begin(), c.part("", &data.Finish))
		c.begun, c.offset, c.choice = false, 0, data.Index+1
	case *inference.End:
		parts = append(c.begin(), c.part("", finish(data)))
		if c.usage {
			last := c.form.completion(c.head, c.form.chunk)
			last.Usage = usageOf(data)
			parts = append(parts, last)
		}
	}
	return parts
}

// begin returns the first chunk of a chat, which has the role, unless it was sent before.
func (c *Chunks) begin() []Completion {
	if c.begun || !c.form.chat() {
		return nil
	}
	c.begun = true
	first := c.form.completion(c.head, c.form.chunk)
	first.Choices = append(first.Choices, Choice{Index: c.choice, Delta: &Delta{Role: "assistant", Content: new(string)}})
	return []Completion{first}
}

// thought returns a chunk with a piece of the reasoning.
func (c *Chunks) thought(text string) Completion {
	p := c.form.completion(c.head, c.form.chunk)
	p.Choices = append(p.Choices, Choice{Index: c.choice, Delta: &Delta{thoughts: thoughts{text, text}}})
	return p
}

// call returns a chunk with a part of a call.
func (c *Chunks) call(d port.ToolDelta) Completion {
	part := ToolCall{Index: &d.Index, ID: d.ID, Function: FunctionCall{d.Name, d.Arguments}}
	if d.Name != "" || d.ID != "" {
		part.Type = typeFunction
	}
	p := c.form.completion(c.head, c.form.chunk)
	p.Choices = append(p.Choices, Choice{Index: c.choice, Delta: &Delta{ToolCalls: []ToolCall{part}}})
	return p
}

// part returns a chunk with a piece of the answer, or the last one with the finish reason.
func (c *Chunks) part(text string, finish *string) Completion {
	p := c.form.completion(c.head, c.form.chunk)
	choice := Choice{Index: c.choice, FinishReason: finish}
	switch {
	case !c.form.chat():
		choice.Text = &text
	case finish != nil:
		choice.Delta = &Delta{}
	default:
		choice.Delta = &Delta{Content: &text}
	}
	p.Choices = append(p.Choices, choice)
	return p
}
