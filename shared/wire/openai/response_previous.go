package openai

import (
	"encoding/json"
	"slices"

	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/port"
)

// FieldPrevious is the member with the id of the response that a request continues.
const FieldPrevious = "previous_response_id"

// Conversation returns the messages of a response that has ended: those of its request without its
// instructions, and its answer. Models do not get its reasoning again.
func Conversation(q inference.Request, a *Answer) []port.Message {
	var o ResponseOptions
	_ = json.Unmarshal(q.Front, &o) // it is the request of a response
	found := q.Messages
	if o.Instructions != nil && *o.Instructions != "" && len(found) > 0 {
		found = found[1:]
	}
	said := port.Message{Role: "assistant", Content: a.Text(), ToolCalls: a.parts.Calls()}
	if said.Content == "" && len(said.ToolCalls) == 0 {
		return found
	}
	return append(slices.Clone(found), said)
}

// Continue puts the messages of an earlier response before those of a request, and behind its
// instructions.
func (q *Request) Continue(o ResponseOptions, earlier []port.Message) {
	at := 0
	if o.Instructions != nil && *o.Instructions != "" {
		at = 1
	}
	q.Ask.Messages = slices.Insert(q.Ask.Messages, at, earlier...)
}
