package openai

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/port"
)

// taskPrefix is the prefix of the ids of inference tasks.
const taskPrefix = "inf_"

// id returns the id of an answer: the id of its task with another prefix.
func id(prefix, taskID string) string { return prefix + strings.TrimPrefix(taskID, taskPrefix) }

// Head contains the fields that all objects of an answer share.
type Head struct {
	TaskID string
	// Model is the model id of the request.
	Model string
	// Created is the time at which the task was accepted.
	Created time.Time
}

// Answer accumulates the events of a task. The zero value is empty.
type Answer struct {
	parts   inference.Parts
	results []inference.Result
	// End and Failure are the data of the last event. One of them is set after it; both are
	// nil before it.
	End     *inference.End
	Failure *inference.Failure
}

// Add adds an event. The caller adds events in the order of the stream.
func (a *Answer) Add(e inference.Event) {
	switch data := e.Data.(type) {
	case inference.Token:
		a.parts.Add(data.T, false)
		a.parts.AddLogprobs(data.Logprobs)
	case inference.Reasoning:
		a.parts.Add(data.T, true)
	case port.ToolDelta:
		a.parts.AddCall(data)
	case *inference.ChoiceEnd:
		a.parts.EndChoice(data.Finish)
	case *inference.Result:
		a.results = append(a.results, *data)
	case *inference.End:
		a.End = data
	case inference.Failure:
		a.Failure = &data
	}
}

// AddAll adds several events. It always returns nil.
func (a *Answer) AddAll(events []inference.Event) error {
	for _, e := range events {
		a.Add(e)
	}
	return nil
}

// Text returns the text of the answer.
func (a *Answer) Text() string { return a.parts.Joined(false) }

// Reasoning returns the text of the reasoning; empty if there is no reasoning.
func (a *Answer) Reasoning() string { return a.parts.Joined(true) }

// HasText reports whether the answer has a text or reasoning.
func (a *Answer) HasText() bool { return len(a.parts.List()) > 0 }

// Usage is the number of tokens of a prompt and its answer.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
	// PromptDetails is nil without cached tokens.
	PromptDetails *InputDetails `json:"prompt_tokens_details,omitempty"`
	// Details is nil if the engine does not count the tokens of the reasoning.
	Details *OutputDetails `json:"completion_tokens_details,omitempty"`
}

func usageOf(e *inference.End) *Usage {
	if e == nil {
		return nil
	}
	u := &Usage{PromptTokens: e.TokensIn, CompletionTokens: e.TokensOut, TotalTokens: e.TokensIn + e.TokensOut}
	if e.CachedTokens > 0 {
		u.PromptDetails = &InputDetails{CachedTokens: e.CachedTokens}
	}
	if e.ReasoningTokens > 0 {
		u.Details = &OutputDetails{ReasoningTokens: e.ReasoningTokens}
	}
	return u
}

// finish returns the finish reason of an end. The default is "stop".
func finish(e *inference.End) *string {
	reason := e.Finish
	if reason == "" {
		reason = "stop"
	}
	return &reason
}

// Embeddings is the answer to a request for vectors.
type Embeddings struct {
	Object string         `json:"object"`
	Data   []Embedding    `json:"data"`
	Model  string         `json:"model"`
	Usage  EmbeddingUsage `json:"usage"`
}

// Embedding is the vector of one input.
type Embedding struct {
	Object string `json:"object"`
	Index  int    `json:"index"`
	// Embedding is a JSON array of numbers, or a string of Base64.
	Embedding json.RawMessage `json:"embedding"`
}

// EmbeddingUsage is the number of tokens of the inputs.
type EmbeddingUsage struct {
	PromptTokens int `json:"prompt_tokens"`
	TotalTokens  int `json:"total_tokens"`
}

// Embeddings returns the vectors of an answer that has ended. With inBase64 each vector is
// Base64 of little-endian 32-bit floats.
func (a *Answer) Embeddings(h Head, inBase64 bool) Embeddings {
	list := Embeddings{Object: "list", Data: make([]Embedding, len(a.results)), Model: h.Model}
	for i, r := range a.results {
		list.Data[i] = Embedding{Object: "embedding", Index: r.Index, Embedding: vector(r.Embedding, inBase64)}
	}
	if a.End != nil {
		list.Usage = EmbeddingUsage{PromptTokens: a.End.TokensIn, TotalTokens: a.End.TokensIn}
	}
	return list
}

func vector(of []float64, inBase64 bool) json.RawMessage {
	var value any = of
	if inBase64 {
		raw := make([]byte, 0, 4*len(of))
		for _, x := range of {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(x)))
		}
		value = base64.StdEncoding.EncodeToString(raw)
	}
	text, _ := json.Marshal(value) //nolint:errchkjson // a text, or finite numbers: they come from JSON
	return text
}

// Models is the list of models.
type Models struct {
	Object string  `json:"object"`
	Data   []Model `json:"data"`
}

// Model is an entry of the list of models.
type Model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// NewModel returns the entry of a model that has been served since a time.
func NewModel(name string, since time.Time) Model {
	return Model{ID: name, Object: "model", Created: since.Unix(), OwnedBy: "sortie"}
}

// NewModels returns a list of models.
func NewModels(of []Model) Models { return Models{Object: "list", Data: append([]Model{}, of...)} }
