package openai

import "github.com/sortie-dev/sortie/shared/inference"

// Completion is a chat completion, a completion, or a part of the stream of one.
type Completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []Choice `json:"choices"`
	Usage   *Usage   `json:"usage,omitempty"`
}

// Choice is the one choice of a completion. A chat has Message, or Delta in a stream;
// another completion has Text.
type Choice struct {
	Index   int      `json:"index"`
	Message *Message `json:"message,omitempty"`
	Delta   *Delta   `json:"delta,omitempty"`
	Text    *string  `json:"text,omitempty"`
	// Logprobs is always null.
	Logprobs *struct{} `json:"logprobs"`
	// FinishReason is null before the end.
	FinishReason *string `json:"finish_reason"`
}

// Message is the answer of a chat.
type Message struct {
	thoughts

	Role    string `json:"role"`
	Content string `json:"content"`
	// Refusal is always null.
	Refusal *string `json:"refusal"`
}

// Delta is a part of a message.
type Delta struct {
	thoughts

	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

// thoughts is the reasoning before an answer; empty without one. OpenAI's API has no member for
// it: clients of llama-server read reasoning_content, those of vLLM reasoning.
type thoughts struct {
	ReasoningContent string `json:"reasoning_content,omitempty"`
	Reasoning        string `json:"reasoning,omitempty"`
}

// Form is the form of a completion.
type Form struct{ prefix, object, chunk string }

// The forms. The answer to the requests of both is a text.
var (
	FormChat = Form{"chatcmpl-", "chat.completion", "chat.completion.chunk"}
	FormText = Form{"cmpl-", "text_completion", "text_completion"}
)

func (f Form) chat() bool { return f == FormChat }

func (f Form) completion(h Head, object string) Completion {
	return Completion{ID: id(f.prefix, h.TaskID), Object: object, Created: h.Created.Unix(), Model: h.Model, Choices: []Choice{}}
}

// Completion returns an answer that has ended.
func (f Form) Completion(h Head, a *Answer) Completion {
	c := f.completion(h, f.object)
	choice := Choice{FinishReason: finish(a.End)}
	if text := a.Text(); f.chat() {
		reasoning := a.Reasoning()
		choice.Message = &Message{Role: "assistant", Content: text, thoughts: thoughts{reasoning, reasoning}}
	} else {
		choice.Text = &text
	}
	c.Choices, c.Usage = append(c.Choices, choice), usageOf(a.End)
	return c
}

// Chunks makes the parts of a stream.
type Chunks struct {
	form  Form
	head  Head
	usage bool
	begun bool
}

// NewChunks returns the parts of a stream, the last one with the usage if that is requested.
func NewChunks(f Form, h Head, usage bool) *Chunks { return &Chunks{form: f, head: h, usage: usage} }

// Add returns the parts of an event, in the order of the stream. That of a failure is not a
// part.
func (c *Chunks) Add(e inference.Event) (parts []Completion) {
	switch data := e.Data.(type) {
	case inference.Token:
		parts = append(c.begin(parts), c.part(data.T, nil))
	case inference.Reasoning:
		if c.form.chat() { // another completion has no member for it
			parts = append(c.begin(parts), c.thought(data.T))
		}
	case *inference.End:
		parts = append(c.begin(parts), c.part("", finish(data)))
		if c.usage {
			last := c.form.completion(c.head, c.form.chunk)
			last.Usage = usageOf(data)
			parts = append(parts, last)
		}
	}
	return parts
}

// begin adds the role of the answer to a chat.
func (c *Chunks) begin(parts []Completion) []Completion {
	if c.begun || !c.form.chat() {
		return parts
	}
	c.begun = true
	first := c.form.completion(c.head, c.form.chunk)
	first.Choices = append(first.Choices, Choice{Delta: &Delta{Role: "assistant", Content: new(string)}})
	return append(parts, first)
}

// thought returns a piece of the reasoning.
func (c *Chunks) thought(text string) Completion {
	p := c.form.completion(c.head, c.form.chunk)
	p.Choices = append(p.Choices, Choice{Delta: &Delta{thoughts: thoughts{text, text}}})
	return p
}

// part returns a piece of the answer, or its end.
func (c *Chunks) part(text string, finish *string) Completion {
	p := c.form.completion(c.head, c.form.chunk)
	choice := Choice{FinishReason: finish}
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
