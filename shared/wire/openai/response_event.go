package openai

import (
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// ResponseEvent is an event of the stream of a response. Its members depend on Type.
type ResponseEvent struct {
	Type           string          `json:"type"`
	SequenceNumber int             `json:"sequence_number"`
	Response       *Response       `json:"response,omitempty"`
	OutputIndex    *int            `json:"output_index,omitempty"`
	ContentIndex   *int            `json:"content_index,omitempty"`
	ItemID         string          `json:"item_id,omitempty"`
	Item           *OutputItem     `json:"item,omitempty"`
	Part           *ContentPart    `json:"part,omitempty"`
	Delta          *string         `json:"delta,omitempty"`
	Text           *string         `json:"text,omitempty"`
	Name           string          `json:"name,omitempty"`
	Arguments      *string         `json:"arguments,omitempty"`
	Logprobs       *[]TokenLogprob `json:"logprobs,omitempty"`
}

// ResponseEvents converts the events of a task to the events of its response. The conversion is
// deterministic, sequence numbers included, so a reader can resume after a sequence number.
type ResponseEvents struct {
	of     run.Run
	next   int
	answer Answer
	begun  bool
	// items is the number of items that have begun. open is the id of the last one.
	items int
	open  string
}

// NewResponseEvents returns a ResponseEvents for the response of a task.
func NewResponseEvents(of run.Run) *ResponseEvents { return &ResponseEvents{of: of} }

// Created returns the first event, response.created. Callers call it once, before Add.
func (s *ResponseEvents) Created() ResponseEvent {
	is := newResponse(s.of, statusQueued)
	return s.event(ResponseEvent{Type: "response.created", Response: &is})
}

func (s *ResponseEvents) event(e ResponseEvent) ResponseEvent {
	e.SequenceNumber = s.next
	s.next++
	return e
}

// within is event for an event about the content of the open item.
func (s *ResponseEvents) within(e ResponseEvent) ResponseEvent {
	e.ItemID, e.OutputIndex, e.ContentIndex = s.open, new(s.items-1), new(int)
	return s.event(e)
}

// Add returns the response's events for an event of the task. The caller adds events in the
// order of the stream.
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
		return append(s.turn(), s.within(ResponseEvent{Type: "response.output_text.delta", Delta: &data.T, Logprobs: new(tokenLogprobs(data.Logprobs))}))
	case port.ToolDelta:
		return s.call(data)
	case *inference.End, inference.Failure:
		return s.end()
	}
	return nil
}

// call returns the events for a part of a call. Engines send the parts of one call after the other;
// a part of an earlier call is in its item alone.
func (s *ResponseEvents) call(d port.ToolDelta) []ResponseEvent {
	made := s.turn()
	items := s.answer.items(s.of.TaskID, statusInProgress)
	if last := items[len(items)-1]; d.Arguments == "" || last.Type != itemCall || last.ID != itemID("fc_", s.of.TaskID, d.Index+1) {
		return made
	}
	return append(made, s.event(ResponseEvent{
		Type: "response.function_call_arguments.delta", ItemID: s.open, OutputIndex: new(s.items - 1), Delta: &d.Arguments,
	}))
}

// turn returns the events that end the open item and begin the next one, if the last event
// added an item to the answer.
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

// end returns the events that end the open item and the response.
func (s *ResponseEvents) end() (made []ResponseEvent) {
	is := Ended(s.of, &s.answer)
	if n := len(is.Output); s.begun && n > 0 {
		if s.items < n { // an answer without a text
			made = s.beginItem(is.Output[s.items])
		}
		made = append(made, s.endItem(is.Output[n-1])...)
	}
	kind := "response." + is.Status
	if is.Status == statusCancelled { // the API has no event for a cancelled response
		kind = "response.failed"
	}
	return append(made, s.event(ResponseEvent{Type: kind, Response: &is}))
}

// beginItem returns the events that begin an item, and makes it the open item.
func (s *ResponseEvents) beginItem(item OutputItem) []ResponseEvent {
	s.items, s.open = s.items+1, item.ID
	if item.Type == itemCall {
		item.Arguments, item.Status = new(string), statusInProgress
		return []ResponseEvent{s.event(ResponseEvent{Type: "response.output_item.added", OutputIndex: new(s.items - 1), Item: &item})}
	}
	empty := item.Content[0]
	if empty.Text, item.Content, item.Status = "", []ContentPart{}, statusInProgress; empty.Logprobs != nil {
		empty.Logprobs = []TokenLogprob{}
	}
	return []ResponseEvent{
		s.event(ResponseEvent{Type: "response.output_item.added", OutputIndex: new(s.items - 1), Item: &item}),
		s.within(ResponseEvent{Type: "response.content_part.added", Part: &empty}),
	}
}

// endItem returns the events that end the open item. item is its final content.
func (s *ResponseEvents) endItem(item OutputItem) []ResponseEvent {
	if item.Type == itemCall {
		return []ResponseEvent{
			s.event(ResponseEvent{
				Type: "response.function_call_arguments.done", ItemID: s.open, OutputIndex: new(s.items - 1), Name: item.Name, Arguments: item.Arguments,
			}),
			s.event(ResponseEvent{Type: "response.output_item.done", OutputIndex: new(s.items - 1), Item: &item}),
		}
	}
	part := &item.Content[0]
	done := ResponseEvent{Type: "response.output_text.done", Text: &part.Text, Logprobs: &part.Logprobs}
	if item.Type == itemReasoning {
		done = ResponseEvent{Type: "response.reasoning_text.done", Text: &part.Text}
	}
	return []ResponseEvent{
		s.within(done), s.within(ResponseEvent{Type: "response.content_part.done", Part: part}),
		s.event(ResponseEvent{Type: "response.output_item.done", OutputIndex: new(s.items - 1), Item: &item}),
	}
}
