package openai

import (
	"strconv"

	"github.com/sortie-dev/sortie/shared/domain/inference"
)

// The types of items.
const (
	itemMessage    = "message"
	itemReasoning  = "reasoning"
	itemCall       = "function_call"
	itemCallOutput = "function_call_output"
)

// OutputItem is a part of a response: a message, the reasoning before it, or a call of a function.
type OutputItem struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Status string `json:"status"`
	// Role is the role of a message; empty for others.
	Role string `json:"role,omitempty"`
	// Summary is empty for a reasoning, because Content has its whole text. It is nil for
	// others.
	Summary []struct{} `json:"summary,omitzero"`
	// Content is nil for a call.
	Content []ContentPart `json:"content,omitzero"`
	// CallID, Name and Arguments are set for a call alone.
	CallID    string  `json:"call_id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments *string `json:"arguments,omitempty"`
}

// ContentPart is the text of an item. Annotations and Logprobs are nil for a reasoning.
type ContentPart struct {
	Type        string         `json:"type"`
	Text        string         `json:"text"`
	Annotations []struct{}     `json:"annotations,omitzero"`
	Logprobs    []TokenLogprob `json:"logprobs,omitzero"`
}

// items returns the items of an answer. The last one gets the status last, the others are
// completed. An answer with an End has at least one item.
func (a *Answer) items(taskID, last string) []OutputItem {
	parts := a.parts.List()
	if len(parts) == 0 && a.End != nil {
		parts = []inference.Part{{}}
	}
	items := make([]OutputItem, len(parts))
	messages, reasonings := 0, 0
	for i, p := range parts {
		switch {
		case p.Call != nil:
			items[i] = OutputItem{
				ID: itemID("fc_", taskID, p.Call.Index+1), Type: itemCall, CallID: p.Call.ID, Name: p.Call.Name, Arguments: &p.Text,
			}
		case p.Reasoning:
			reasonings++
			items[i] = reasoningItem(itemID("rs_", taskID, reasonings), p.Text)
		default:
			messages++
			items[i] = messageItem(itemID("msg_", taskID, messages), p)
		}
		items[i].Status = statusCompleted
		if i == len(parts)-1 {
			items[i].Status = last
		}
	}
	return items
}

// itemID returns the id of item n of its type, counted from 1.
func itemID(prefix, taskID string, n int) string {
	if n == 1 {
		return id(prefix, taskID)
	}
	return id(prefix, taskID) + "_" + strconv.Itoa(n)
}

func messageItem(id string, p inference.Part) OutputItem {
	return OutputItem{ID: id, Type: itemMessage, Role: "assistant", Content: []ContentPart{
		{Type: "output_text", Text: p.Text, Annotations: []struct{}{}, Logprobs: tokenLogprobs(p.Logprobs)},
	}}
}

func reasoningItem(id, text string) OutputItem {
	return OutputItem{ID: id, Type: itemReasoning, Summary: []struct{}{}, Content: []ContentPart{{Type: "reasoning_text", Text: text}}}
}
