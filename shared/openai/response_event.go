package openai

import (
	"github.com/sortie-dev/sortie/shared/inference"
	"github.com/sortie-dev/sortie/shared/run"
)

// ResponseEvent is an event of the stream of a response. Type says which members it has.
type ResponseEvent struct {
	Type           string       `json:"type"`
	SequenceNumber int          `json:"sequence_number"`
	Response       *Response    `json:"response,omitempty"`
	OutputIndex    *int         `json:"output_index,omitempty"`
	ContentIndex   *int         `json:"content_index,omitempty"`
	ItemID         string       `json:"item_id,omitempty"`
	Item           *OutputItem  `json:"item,omitempty"`
	Part           *ContentPart `json:"part,omitempty"`
	Delta          *string      `json:"delta,omitempty"`
	Text           *string      `json:"text,omitempty"`
	Logprobs       *[]struct{}  `json:"logprobs,omitempty"`
}

// ResponseEvents makes the events of a response from those of its task. The same events of
// the task make the same ones with the same numbers, so a reader continues by number.
type ResponseEvents struct {
	of     run.Run
	next   int
	answer Answer
	begun  bool
	// items is how many items have begun, of which the last one is open, with the id open.
	items int
	open  string
}

// NewResponseEvents returns the events of the response of a task.
func NewResponseEvents(of run.Run) *ResponseEvents { return &ResponseEvents{of: of} }

// Created returns the first event.
func (s *ResponseEvents) Created() ResponseEvent {
	is := newResponse(s.of, statusQueued)
	return s.event(ResponseEvent{Type: "response.created", Response: &is})
}

func (s *ResponseEvents) event(e ResponseEvent) ResponseEvent {
	e.SequenceNumber = s.next
	s.next++
	return e
}

// within is event for an event of the content of the open item.
func (s *ResponseEvents) within(e ResponseEvent) ResponseEvent {
	e.ItemID, e.OutputIndex, e.ContentIndex = s.open, new(s.items-1), new(int)
	return s.event(e)
}

// Add returns the events that an event of the task makes.
func (s *ResponseEvents) Add(e inference.Event) (made []ResponseEvent) {
	s.answer.Add(e)
	switch data := e.Data.(type) {
	case *inference.Started:
		if s.begun {
			return nil
		}
		s.begun = true
		is := newResponse(s.of, statusInProgress)
		return []ResponseEvent{s.event(ResponseEvent{Type: "response.in_progress", Response: &is})}
	case inference.Reasoning:
		return append(s.turn(), s.within(ResponseEvent{Type: "response.reasoning_text.delta", Delta: &data.T}))
	case inference.Token:
		return append(s.turn(), s.within(ResponseEvent{Type: "response.output_text.delta", Delta: &data.T, Logprobs: &[]struct{}{}}))
	case *inference.End, inference.Failure:
		return s.end()
	}
	return nil
}

// turn returns the events of the end of an item and the beginning of the next one, if the
// answer has more items than have begun.
func (s *ResponseEvents) turn() (made []ResponseEvent) {
	items := s.answer.items(s.of.TaskID, statusInProgress)
	if len(items) == s.items {
		return nil
	}
	if s.items > 0 {
		made = s.endItem(items[s.items-1])
	}
	return append(made, s.beginItem(items[s.items])...)
}

// end returns the last events.
func (s *ResponseEvents) end() (made []ResponseEvent) {
	is := Ended(s.of, &s.answer)
	if n := len(is.Output); s.begun && n > 0 {
		if s.items < n { // an answer without a text
			made = s.beginItem(is.Output[s.items])
		}
		made = append(made, s.endItem(is.Output[n-1])...)
	}
	kind := "response." + is.Status
	if is.Status == statusCancelled { // the API has no event for that
		kind = "response.failed"
	}
	return append(made, s.event(ResponseEvent{Type: kind, Response: &is}))
}

// beginItem returns the events of an item that begins.
func (s *ResponseEvents) beginItem(item OutputItem) []ResponseEvent {
	s.items, s.open = s.items+1, item.ID
	empty := item.Content[0]
	empty.Text, item.Content, item.Status = "", []ContentPart{}, statusInProgress
	return []ResponseEvent{
		s.event(ResponseEvent{Type: "response.output_item.added", OutputIndex: new(s.items - 1), Item: &item}),
		s.within(ResponseEvent{Type: "response.content_part.added", Part: &empty}),
	}
}

// endItem returns the events of the open item when it ends.
func (s *ResponseEvents) endItem(item OutputItem) []ResponseEvent {
	part := &item.Content[0]
	done := ResponseEvent{Type: "response.output_text.done", Text: &part.Text, Logprobs: &[]struct{}{}}
	if item.Type == itemReasoning {
		done = ResponseEvent{Type: "response.reasoning_text.done", Text: &part.Text}
	}
	return []ResponseEvent{
		s.within(done), s.within(ResponseEvent{Type: "response.content_part.done", Part: part}),
		s.event(ResponseEvent{Type: "response.output_item.done", OutputIndex: new(s.items - 1), Item: &item}),
	}
}
