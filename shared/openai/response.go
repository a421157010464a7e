package openai

import (
	"encoding/json"
	"strings"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/inference"
	"github.com/sortie-dev/sortie/shared/run"
)

// responsePrefix is the prefix of the ids of responses. What follows is the id of the task.
const responsePrefix = "resp_"

// TaskOf returns the id of the task of a response; false for a text that is no id of one.
func TaskOf(responseID string) (taskID string, ok bool) {
	rest, ok := strings.CutPrefix(responseID, responsePrefix)
	return taskPrefix + rest, ok && rest != ""
}

// Response is an answer of the Responses API.
type Response struct {
	ID                string             `json:"id"`
	Object            string             `json:"object"`
	CreatedAt         int64              `json:"created_at"`
	Status            string             `json:"status"`
	Background        bool               `json:"background"`
	Error             *ResponseError     `json:"error"`
	IncompleteDetails *IncompleteDetails `json:"incomplete_details"`
	Instructions      *string            `json:"instructions"`
	MaxOutputTokens   *int               `json:"max_output_tokens"`
	Metadata          map[string]string  `json:"metadata"`
	Model             string             `json:"model"`
	Output            []OutputItem       `json:"output"`
	ParallelToolCalls bool               `json:"parallel_tool_calls"`
	Store             bool               `json:"store"`
	Temperature       *float64           `json:"temperature"`
	Text              ResponseForm       `json:"text"`
	ToolChoice        string             `json:"tool_choice"`
	Tools             []struct{}         `json:"tools"`
	TopP              *float64           `json:"top_p"`
	Truncation        string             `json:"truncation"`
	Usage             *ResponseUsage     `json:"usage"`
}

// ResponseError is why a response has failed.
type ResponseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// IncompleteDetails is why a response ends early.
type IncompleteDetails struct {
	Reason string `json:"reason"`
}

// ResponseForm is the form of the text: always plain.
type ResponseForm struct {
	Format TextFormat `json:"format"`
}

// TextFormat is the type of a form.
type TextFormat struct {
	Type string `json:"type"`
}

// ResponseUsage is how many tokens a response took.
type ResponseUsage struct {
	InputTokens         int           `json:"input_tokens"`
	InputTokensDetails  InputDetails  `json:"input_tokens_details"`
	OutputTokens        int           `json:"output_tokens"`
	OutputTokensDetails OutputDetails `json:"output_tokens_details"`
	TotalTokens         int           `json:"total_tokens"`
}

// InputDetails are always 0: no engine reports them in one way.
type InputDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// OutputDetails are always 0.
type OutputDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

// OutputItem is the message that a response consists of.
type OutputItem struct {
	ID      string        `json:"id"`
	Type    string        `json:"type"`
	Status  string        `json:"status"`
	Role    string        `json:"role"`
	Content []ContentPart `json:"content"`
}

// ContentPart is the text of a message.
type ContentPart struct {
	Type        string     `json:"type"`
	Text        string     `json:"text"`
	Annotations []struct{} `json:"annotations"`
	Logprobs    []struct{} `json:"logprobs"`
}

// The statuses of a response.
const (
	statusQueued     = "queued"
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"
	statusCancelled  = "cancelled"
)

// OptionsOf returns the options of the response of a task; false if the task is of another
// operation.
func OptionsOf(r run.Run) (o ResponseOptions, q inference.Request, ok bool) {
	if r.Work.Inference == nil || json.Unmarshal(r.Work.Inference.Request, &q) != nil || len(q.Front) == 0 {
		return o, q, false
	}
	return o, q, json.Unmarshal(q.Front, &o) == nil
}

// newResponse returns the response of a task before its answer.
func newResponse(r run.Run, status string) Response {
	o, q, _ := OptionsOf(r)
	metadata := o.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	return Response{
		ID: id(responsePrefix, r.TaskID), Object: "response", CreatedAt: r.CreatedAt.Unix(), Status: status, Background: o.Background,
		Instructions: o.Instructions, MaxOutputTokens: o.MaxTokens, Metadata: metadata, Model: r.Work.Inference.Model, Output: []OutputItem{},
		Store: !o.Unstored, Temperature: q.Temperature, Text: ResponseForm{TextFormat{"text"}}, ToolChoice: "none", Tools: []struct{}{}, TopP: q.TopP,
		Truncation: "disabled",
	}
}

// Waiting returns the response of a task that has not ended.
func Waiting(r run.Run) Response {
	if r.State == run.Running || r.State == run.Terminating {
		return newResponse(r, statusInProgress)
	}
	return newResponse(r, statusQueued)
}

// Ended returns the response of a task with its answer.
func Ended(r run.Run, a *Answer) Response {
	is := newResponse(r, statusCompleted)
	item := statusCompleted
	switch {
	case a.Failure != nil && a.Failure.Code == fault.Cancelled:
		is.Status, item = statusCancelled, statusIncomplete
	case a.Failure != nil:
		is.Status, item = statusFailed, statusIncomplete
		is.Error = &ResponseError{Code: "server_error", Message: a.Failure.Message}
	case a.End != nil && a.End.Finish == "length":
		is.Status, item = statusIncomplete, statusIncomplete
		is.IncompleteDetails = &IncompleteDetails{Reason: "max_output_tokens"}
	}
	if e := a.End; e != nil {
		is.Usage = &ResponseUsage{InputTokens: e.TokensIn, OutputTokens: e.TokensOut, TotalTokens: e.TokensIn + e.TokensOut}
	}
	if text := a.Text(); text != "" || a.End != nil {
		is.Output = []OutputItem{outputItem(r.TaskID, item, part(text))}
	}
	return is
}

func outputItem(taskID, status string, content ...ContentPart) OutputItem {
	return OutputItem{ID: id("msg_", taskID), Type: "message", Status: status, Role: "assistant", Content: append([]ContentPart{}, content...)}
}

func part(text string) ContentPart {
	return ContentPart{Type: "output_text", Text: text, Annotations: []struct{}{}, Logprobs: []struct{}{}}
}

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

// Add returns the events that an event of the task makes.
func (s *ResponseEvents) Add(e inference.Event) (made []ResponseEvent) {
	zero := 0
	none := []struct{}{}
	itemID := id("msg_", s.of.TaskID)
	add := func(each ResponseEvent) { made = append(made, s.event(each)) }
	within := func(each ResponseEvent) {
		each.ItemID, each.OutputIndex, each.ContentIndex = itemID, &zero, &zero
		add(each)
	}
	s.answer.Add(e)
	switch data := e.Data.(type) {
	case *inference.Started:
		if s.begun {
			return nil
		}
		s.begun = true
		is := newResponse(s.of, statusInProgress)
		add(ResponseEvent{Type: "response.in_progress", Response: &is})
		item, empty := outputItem(s.of.TaskID, statusInProgress), part("")
		add(ResponseEvent{Type: "response.output_item.added", OutputIndex: &zero, Item: &item})
		within(ResponseEvent{Type: "response.content_part.added", Part: &empty})
	case inference.Token:
		within(ResponseEvent{Type: "response.output_text.delta", Delta: &data.T, Logprobs: &none})
	case *inference.End, inference.Failure:
		is := Ended(s.of, &s.answer)
		if s.begun && len(is.Output) > 0 {
			item := is.Output[0]
			within(ResponseEvent{Type: "response.output_text.done", Text: &item.Content[0].Text, Logprobs: &none})
			within(ResponseEvent{Type: "response.content_part.done", Part: &item.Content[0]})
			add(ResponseEvent{Type: "response.output_item.done", OutputIndex: &zero, Item: &item})
		}
		kind := "response." + is.Status
		if is.Status == statusCancelled { // the API has no event for that
			kind = "response.failed"
		}
		add(ResponseEvent{Type: kind, Response: &is})
	}
	return made
}

// Deleted is the answer to the removal of a response.
type Deleted struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

// NewDeleted returns the answer to the removal of the response of a task.
func NewDeleted(taskID string) Deleted {
	return Deleted{ID: id(responsePrefix, taskID), Object: "response", Deleted: true}
}
